package command

// Decode reads what a gate printed.
var Decode = decode
