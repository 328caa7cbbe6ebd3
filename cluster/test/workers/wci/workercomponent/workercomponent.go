// Package workercomponent adds nothing to the server's workers.
package workercomponent

import "go.uber.org/fx"

// Module is what the server includes.
var Module = fx.Options()
