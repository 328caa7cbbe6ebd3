package cli

import (
	"context"
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/cli/live"
	"github.com/pawlrun/pawl/internal/engine/drive"
)

// unreadMessages is a fold of the messages that a run has received and not read.
type unreadMessages []live.Message

// add applies an event, and returns the messages that are read with it.
func (u *unreadMessages) add(data event.Data) (read []live.Message) {
	switch d := data.(type) {
	case event.InputReceived:
		said := live.Message{ID: d.Command, Text: d.Text, Later: d.Later}
		at := slices.IndexFunc(*u, func(m live.Message) bool { return d.Replaces != 0 && m.ID == d.Replaces })
		switch {
		case at >= 0 && d.Message() == nil:
			*u = slices.Delete(*u, at, at+1)
		case at >= 0:
			(*u)[at] = said
		case d.Message() != nil:
			*u = append(*u, said)
		}
	case event.CycleStart:
		*u = slices.DeleteFunc(*u, func(m live.Message) bool {
			if !m.Later {
				read = append(read, m)
			}
			return !m.Later
		})
	}
	return read
}

// receive applies an event of the run that is shown, and prints what the run reads.
func (l *liveChat) receive(data event.Data) {
	switch data.(type) {
	case event.InputReceived, event.CycleStart:
	default:
		return
	}
	l.mu.Lock()
	read := l.unread.add(data)
	l.mu.Unlock()
	l.showUnread(read)
}

// readAll empties the unread messages, which a run is started with.
func (l *liveChat) readAll() {
	l.mu.Lock()
	read := l.unread
	l.unread = nil
	l.mu.Unlock()
	l.showUnread(read)
}

// showUnread shows the unread messages, and prints those that were read.
func (l *liveChat) showUnread(read []live.Message) {
	for _, m := range read {
		l.said(m.Text)
	}
	l.mu.Lock()
	left := slices.Clone(l.unread)
	l.mu.Unlock()
	l.screen.Send(live.Unread{Messages: left})
}

func (l *liveChat) hasUnread() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.unread) > 0
}

// readUnread reads the unread messages of a run from the journal.
func (l *liveChat) readUnread(ctx context.Context, run string) error {
	var found unreadMessages
	for e, err := range drive.AsStored(ctx, l.store, run, event.TypeInputReceived, event.TypeCycleStart) {
		if err != nil {
			return err
		}
		found.add(e.Data)
	}
	l.mu.Lock()
	l.unread = found
	l.mu.Unlock()
	l.showUnread(nil)
	return nil
}
