"""How long the text is for which FLOPs and speeds are told, unless another length is asked for."""

LENGTH = 128  # tokens; a speed is measured at the most that the model reads, if that is less
