// SPDX-License-Identifier: Apache-2.0

package sessionchild

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wherryproject/wherry/internal/cluster/agent/talk"
	"github.com/wherryproject/wherry/internal/enginesocket"
	"github.com/wherryproject/wherry/internal/hostdebug/engines"
	"github.com/wherryproject/wherry/internal/hostdebug/engines/byrpc"
)

// runtimeTime is how long a runtime may take to say that it is one.
const runtimeTime = 10 * time.Second

// reportRuntime reports whether the node's container runtime answers.
func reportRuntime(ctx context.Context, o engines.Options, reports reporter) int {
	ctx, cancel := context.WithTimeout(ctx, runtimeTime)
	defer cancel()
	runtime, err := byrpc.NewCRI(ctx, o)
	if err != nil {
		return reports.refuse(forInstaller(err))
	}
	defer runtime.Close()
	reports.say(talk.Report{Ready: &talk.Ready{}})
	return 0
}

// forInstaller says how another runtime is named: agents have other flags than command lines. (Pure.)
func forInstaller(err error) error {
	if absent := (*enginesocket.Absent)(nil); errors.As(err, &absent) {
		err = errors.New(absent.What)
	}
	return fmt.Errorf("the node's container runtime: %w (wherry cluster install --cri-socket PATH names another)", err)
}
