package policy

import "github.com/pawlrun/pawl/event"

// High reports whether a call of this risk is irreversible and so needs an approval
// record.
func High(r event.Risk) bool {
	switch r {
	case event.RiskDelete, event.RiskSend, event.RiskPermission, event.RiskFinancial:
		return true
	}
	return false
}
