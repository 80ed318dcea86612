"""Sound as numbers: samples, files, rates, and the two small models that hear when somebody speaks and has finished."""
