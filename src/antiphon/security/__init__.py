"""Rules about origins, tokens, quotas and security headers."""
