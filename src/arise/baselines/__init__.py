"""The methods ARISE is compared with, each as an object that plugs into the training loop."""
