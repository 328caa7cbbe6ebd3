package postgres

import "time"

// WithClock returns options under which the process's own clock is another.
func WithClock(o Options, local func() time.Time) Options {
	o.local = local
	return o
}

// SchemaVersion is that of this package.
const SchemaVersion = schemaVersion
