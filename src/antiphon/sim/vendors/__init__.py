"""What each provider does on its wire: its rules, its refusals, and the messages that faults send in its name."""
