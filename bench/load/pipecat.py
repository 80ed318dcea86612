def measure_input(*a): raise NotImplementedError
def prepare(*a): raise NotImplementedError
