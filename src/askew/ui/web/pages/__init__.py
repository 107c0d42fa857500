"""The pages of the explorer. Each is a function that turns results into markup."""
