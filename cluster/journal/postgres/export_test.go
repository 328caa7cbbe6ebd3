package postgres

import "time"

// WithClock returns options that replace the process's own clock.
func WithClock(o Options, local func() time.Time) Options {
	o.local = local
	return o
}

// SchemaVersion is the schema version of this package.
const SchemaVersion = schemaVersion
