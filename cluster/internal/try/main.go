// Command try starts a PostgreSQL server, a Temporal server, a server of Pawl and two
// workers. They run until Ctrl-C, so that a user can kill a worker and see the other
// continue its runs.
//
//	try PROGRAM AGENTS
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pawlrun/pawl/cluster/internal/pgtest"
	"github.com/pawlrun/pawl/cluster/internal/temporaltest"
)

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "try:", err)
		os.Exit(1)
	}
}

func run(program, agents string) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	program, err = filepath.Abs(program)
	if err != nil {
		return err
	}
	database, err := pgtest.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Remove()) }()
	data, err := os.MkdirTemp("", "pawl-temporal-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(data)) }()
	temporal, err := temporaltest.Start(context.WithoutCancel(ctx), data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, temporal.Down()) }()
	fmt.Printf("the journal:  export PAWL_JOURNAL=%s\n", database.URL())
	var processes []*exec.Cmd
	for _, args := range [][]string{{"serve", "--addr", "127.0.0.1:3001"}, {"worker"}, {"worker"}} {
		p := exec.CommandContext(ctx, program, append(args, "--journal", database.URL(), "--temporal", temporal.Addr, "--agents", agents)...)
		p.Stdout, p.Stderr = os.Stdout, os.Stderr
		p.Cancel = func() error { return p.Process.Signal(os.Interrupt) }
		p.WaitDelay = 15 * time.Second
		if err := p.Start(); err != nil {
			return err
		}
		fmt.Printf("%s:  kill -9 %d\n", args[0], p.Process.Pid)
		processes = append(processes, p)
	}
	for _, p := range processes {
		_ = p.Wait() // the user may have killed it
	}
	return nil
}
