// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"runtime/debug"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/version"

	"github.com/wherryproject/wherry/internal/runtime/network"
)

func main() {
	debug.SetGCPercent(-1) // lives for milliseconds
	skel.PluginMainFuncs(network.Plugin(os.Stdout), version.PluginSupports("1.0.0", "1.1.0"),
		"Wherry's CNI plug-in: bridge, addresses and host ports of pods")
}
