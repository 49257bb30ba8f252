// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"github.com/wherryproject/wherry/internal/cli/ask"
	"github.com/wherryproject/wherry/internal/cli/service"
	"github.com/wherryproject/wherry/internal/datadir"
)

// ServiceName is what the service is called unless it is given another name.
const ServiceName = "wherry"

// StartCommand is the command that starts the server of a data folder: the service, if that is how it is started here.
func StartCommand(dataDir string) string {
	if dataDir != datadir.Default {
		return datadir.Start(dataDir)
	}
	if command := service.ThisMachine().StartCommand(ServiceName); command != "" && dataDir == ask.DataDir() {
		return "sudo " + command
	}
	return datadir.Start(dataDir)
}
