// in one pass only
