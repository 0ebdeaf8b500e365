"""The CronJob controller: `plan` computes times and Jobs, `controller` creates and deletes Jobs."""
