// Package event defines the events of a journal: the envelope of every durable record,
// the typed payloads, the list of reasons, and the outcome of a run.
//
// An event is a fact or a decision that has been made. Folding a run's events in order
// gives its state, and a fold never makes a decision again. Payloads only grow: they
// gain optional fields and never lose one. An event of an unknown kind is preserved
// when it is read and written.
package event
