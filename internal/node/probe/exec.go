// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/node/env"
)

// exec runs the command in the container. A command that cannot be started at all (no such file) has no verdict, as in
// Kubernetes: it is the spec that is wrong, not the container.
func (p *Prober) exec(ctx context.Context, t Target, command []string, timeout time.Duration) (Result, error) {
	command = env.Expand(command, literals(t.Container.Env))
	r, err := p.cri.ExecSync(ctx, t.ContainerID, command, timeout)
	if late := (*cri.ExecTimeoutError)(nil); errors.As(err, &late) {
		return failed("command timed out: %q timed out after %s", strings.Join(command, " "), timeout), nil
	}
	if err != nil {
		return Result{}, err
	}
	verdict := Success
	if r.ExitCode != 0 {
		verdict = Failure
	}
	return Result{Verdict: verdict, Message: Cut(string(r.Output()))}, nil
}

// literals are the variables whose values stand in the spec: those that $(NAME) in a probe's command means. The others
// are empty.
func literals(vars []corev1.EnvVar) []*runtimeapi.KeyValue {
	out := make([]*runtimeapi.KeyValue, 0, len(vars))
	for _, v := range vars {
		out = append(out, &runtimeapi.KeyValue{Key: v.Name, Value: []byte(v.Value)})
	}
	return out
}
