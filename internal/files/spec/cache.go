package spec

// Cache configures the providers' prompt caches. In a file it is a mapping, or the
// lifetime alone.
type Cache struct {
	// TTL is the lifetime to request for the prefix; "" means the default, 5m.
	TTL string `yaml:"ttl,omitempty" oneof:"5m 1h off" short:"yes"`
}

func (*Cache) Expected() string { return "off, or {ttl: 5m} or {ttl: 1h}" }
