// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"

	"github.com/wherryproject/wherry/internal/cli/short"
	"github.com/wherryproject/wherry/internal/cluster/agent"
	"github.com/wherryproject/wherry/internal/hostdebug/guard"
	"github.com/wherryproject/wherry/internal/names/resolver"
	"github.com/wherryproject/wherry/internal/names/wire"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == wire.Word {
		os.Exit(resolver.Main(os.Args[2:], os.Stderr))
	}
	if len(os.Args) > 1 && os.Args[1] == guard.Word {
		os.Exit(guard.Main(os.Args[2:], os.Stdin, os.Stderr))
	}
	if len(os.Args) > 1 && os.Args[1] == agent.Word {
		os.Exit(agent.Main(os.Args[2:], os.Stderr))
	}
	os.Exit(short.Main(os.Args, os.Stdin, os.Stdout, os.Stderr))
}
