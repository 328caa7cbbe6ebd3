// Command pawl is the command line of Pawl with support for journals on PostgreSQL
// and for runs that Temporal places on workers.
package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/cluster/internal/place"
	"github.com/pawlrun/pawl/cluster/journal/postgres"
	"github.com/pawlrun/pawl/internal/cli"
	"github.com/pawlrun/pawl/internal/host/secret"
)

// version is set by the linker of a release build.
var version = ""

func main() { os.Exit(cli.Main(build())) }

func build() cli.Build {
	return cli.Build{
		Version:   version,
		Journals:  map[string]cli.OpenJournal{"postgres": open, "postgresql": open},
		Addresses: postgres.Addresses,
		Commands:  []func(cli.Environment) *cobra.Command{journalCommand, workerCommand(place.MachineLacks), scheduleCommand},
		Dispatch:  dispatch,
		Examine:   examine,
	}
}

// open opens a journal on PostgreSQL.
func open(ctx context.Context, at string, use cli.Use) (cli.Opened, error) {
	var o cli.Opened
	password, err := postgres.Password(at)
	if err != nil {
		return o, cli.Usage(err)
	}
	if password != "" {
		o.Secrets = []secret.Secret{{Name: "PGPASSWORD", Value: password}}
	}
	store, err := postgres.Open(ctx, at, postgres.Options{ReadOnly: use.ReadOnly, Create: use.Create})
	for _, refused := range []error{postgres.ErrEmpty, postgres.ErrOlder, postgres.ErrUnsafe, postgres.ErrStandby} {
		if errors.Is(err, refused) {
			return o, cli.Usage(err)
		}
	}
	if err != nil {
		return o, err
	}
	o.Store = store
	return o, nil
}
