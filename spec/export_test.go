package spec

import "maps"

// Choices are the values that the schema of an agent file offers by place.
func Choices() map[string][]string { return maps.Clone(choices) }
