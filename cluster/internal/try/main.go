// Command try starts a PostgreSQL server and two servers of Pawl that use it. They run
// until Ctrl-C, so that a user can kill one of them and see the other continue its runs.
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
	fmt.Printf("the journal:  export PAWL_JOURNAL=%s\n", database.URL())
	var servers []*exec.Cmd
	for _, addr := range []string{"127.0.0.1:3001", "127.0.0.1:3002"} {
		server := exec.CommandContext(ctx, program, "--journal", database.URL(), "serve", "--addr", addr, "--agents", agents)
		server.Stdout, server.Stderr = os.Stdout, os.Stderr
		server.Cancel = func() error { return server.Process.Signal(os.Interrupt) }
		server.WaitDelay = 15 * time.Second
		if err := server.Start(); err != nil {
			return err
		}
		fmt.Printf("server %s:  kill -9 %d\n", addr, server.Process.Pid)
		servers = append(servers, server)
	}
	for _, server := range servers {
		_ = server.Wait() // the user may have killed it
	}
	return nil
}
