"""The ResourceClaim controller: `plan` decides, `controller` acts."""
