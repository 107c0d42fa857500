"""The pages: each is a function from what was found to markup."""
