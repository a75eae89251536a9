"""Who may do what: principals, rights, allowed paths, admission, guards."""
