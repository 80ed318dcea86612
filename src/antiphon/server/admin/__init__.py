"""`/api/admin`: what the operator's page shows and changes, for admin tokens alone."""
