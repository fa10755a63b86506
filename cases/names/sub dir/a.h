// in a folder with a space
