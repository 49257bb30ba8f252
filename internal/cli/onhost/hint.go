// SPDX-License-Identifier: Apache-2.0

package onhost

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/reach"
	"github.com/wherryproject/wherry/internal/hostdebug/engines"
	"github.com/wherryproject/wherry/internal/hostdebug/target"
)

// hintTime bounds how long is looked for what else a name could mean.
const hintTime = time.Second

// Hint adds to the error about a pod that is not there, or whose server is not, that a container of this machine has
// its name (DA-13). Other errors, and none, are returned as they are.
func (f *Flags) Hint(ctx context.Context, name string, err error) error {
	away := (*reach.Away)(nil)
	if err == nil || os.Geteuid() != 0 || !apierrors.IsNotFound(err) && !errors.As(err, &away) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, hintTime)
	defer cancel()
	for _, kind := range []target.Engine{target.Docker, target.Podman} {
		to, onHost, perr := target.Parse(string(kind) + ":" + name)
		if perr != nil || !onHost {
			return err
		}
		e, oerr := engines.Of(ctx, kind, f.Options())
		if oerr != nil {
			continue
		}
		if _, ferr := e.Find(ctx, to); ferr == nil {
			return hinted(err, to)
		}
	}
	return err
}

// hinted is an error with what else could have been meant, and with its exit code.
func hinted(err error, to target.Target) error {
	code := cmdline.ExitFailure
	if exit, ok := errors.AsType[*cmdline.Exit](err); ok {
		code = exit.Code
	}
	words := err.Error()
	if away, ok := errors.AsType[*reach.Away](err); ok {
		words = away.Error()
	}
	return cmdline.ExitWith(code,
		fmt.Errorf("%s\nthere is a container of that name on this machine: sudo wherry debug %s",
			words, to))
}
