"""Whether two records are told to be one: four labelled sets, against simpler ways; and how long a lookup takes."""
