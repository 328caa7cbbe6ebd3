// Command mutate changes one operator of a package at a time, lets the package's
// own tests judge each change, and prints which changes they do not notice. The
// changes are gremlins', whose go command it stands in for (see [asGo]).
//
//	go run ./internal/mutate -page docs/mutation.md ./machine/flow
//	go run ./internal/mutate -changes -within 9m
//
// The first form tries every operator of the packages and records the figures on
// the page. The second tries only lines that a change touches and exits with 1
// when too many of its mutants live.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	if filepath.Base(os.Args[0]) == "go" {
		os.Exit(asGo(os.Args[1:]))
	}
	var o options
	flag.StringVar(&o.gremlins, "gremlins", "bin/gremlins", "the gremlins binary")
	flag.StringVar(&o.page, "page", "docs/mutation.md", "the page with the figures and the mutants that change nothing")
	flag.BoolVar(&o.changes, "changes", false, "try only lines changed since -since, and leave the page as it is")
	flag.StringVar(&o.since, "since", "", "commit that -changes compares with (default: see docs/mutation.md)")
	flag.DurationVar(&o.within, "within", 0, "stop after this time and report what is known")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.run(ctx, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		stop()
		os.Exit(1)
	}
}

type options struct {
	gremlins, page, since string
	changes               bool
	within                time.Duration
}

func (o options) run(ctx context.Context, packages []string) error {
	if o.within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.within)
		defer cancel()
	}
	page, err := readPage(o.page)
	if err != nil {
		return err
	}
	g, err := newGremlins(o.gremlins, page)
	if err != nil {
		return err
	}
	defer g.close()
	if o.changes {
		return g.changes(ctx, o.since)
	}
	if len(packages) == 0 {
		return errors.New("name a package: make mutate PKG=./machine/flow")
	}
	for _, p := range packages {
		p = strings.TrimPrefix(filepath.ToSlash(filepath.Clean(p)), "./")
		began := time.Now()
		found, err := g.try(ctx, p, "")
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		page.set(p, found, began, time.Since(began))
		if err := page.write(o.page); err != nil {
			return fmt.Errorf("record the figures: %w", err)
		}
	}
	return nil
}
