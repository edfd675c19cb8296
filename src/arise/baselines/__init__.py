"""The methods ARISE is compared with, each as an object in one of the loop's seams."""
