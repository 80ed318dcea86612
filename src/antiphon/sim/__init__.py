"""Simulators of the providers: the endpoints of the gateway behind a fault injector."""
