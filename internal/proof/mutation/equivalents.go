package main

// equivalents are conditions that nothing can notice the absence of, with the reason.
var equivalents = map[string]string{}
