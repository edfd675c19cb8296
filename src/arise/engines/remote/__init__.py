"""Training and sampling outside this process: AReaL or verl train, vLLM servers sample, behind one `ports.Engine`."""
