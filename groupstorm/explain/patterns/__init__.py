"""The rules that name what happened to a group, one subject in each module; `table` lists them."""
