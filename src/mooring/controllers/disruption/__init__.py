"""The disruption controller: `plan` computes the status of budgets, `controller` writes it."""
