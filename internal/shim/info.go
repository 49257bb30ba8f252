// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"fmt"
	"io"
	"os/exec"

	"github.com/containerd/containerd/api/types"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

const (
	// Front is the name of the program that containerd starts, and which holds pods' namespaces.
	Front = "containerd-shim-wherry-v1"
	// Program is the name of the one that serves: this one.
	Program = "wherry-shim"

	holderName = "pause"                   // what a holder is called in lists of processes
	name       = "io.containerd.wherry.v1" // in containerd's words
	// What typeurl calls the OCI features structure (containerd registers it so).
	featuresType = "types.containerd.io/opencontainers/runtime-spec/1/features/Features"
)

// Info shows containerd what the runtime can do: in runc's own words, since it is runc that does it.
func Info(ctx context.Context, binary string, to io.Writer) error {
	features, err := exec.CommandContext(ctx, binary, "features").Output()
	if err != nil {
		return fmt.Errorf("%s features: %w", binary, err)
	}
	data, err := proto.Marshal(&types.RuntimeInfo{
		Name: name, Version: &types.RuntimeVersion{Version: "v1"},
		Features: &anypb.Any{TypeUrl: featuresType, Value: features},
	})
	if err != nil {
		return err
	}
	_, err = to.Write(data)
	return err
}
