package policy

import "github.com/pawlrun/pawl/event"

// High reports whether a call of this risk does what cannot be taken back: such a
// call carries an approval record.
func High(r event.Risk) bool {
	switch r {
	case event.RiskDelete, event.RiskSend, event.RiskPermission, event.RiskFinancial:
		return true
	}
	return false
}
