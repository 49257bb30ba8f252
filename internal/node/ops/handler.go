// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/exitcode"
)

// RunSandbox has the runtime make a pod's sandbox, by the handler of the pod's runtime class (KEP-585). Its errors are
// for the pod's status: they name the class and the handler, of which the runtime may know nothing (PL-15).
func (r *Runner) RunSandbox(ctx context.Context, pod *corev1.Pod,
	config *runtimeapi.PodSandboxConfig) (*runtimeapi.RunPodSandboxResponse, error) {
	req := &runtimeapi.RunPodSandboxRequest{Config: config}
	class := pod.Spec.RuntimeClassName
	if class != nil && *class != "" {
		if r.HandlerOf == nil {
			return nil, fmt.Errorf("runtime class %q: this node cannot look runtime classes up", *class)
		}
		var err error
		if req.RuntimeHandler, err = r.HandlerOf(ctx, *class); err != nil {
			return nil, err
		}
	}
	made, err := r.CRI.Runtime.RunPodSandbox(ctx, req)
	switch {
	case err == nil:
		return made, nil
	case req.RuntimeHandler != "":
		return nil, fmt.Errorf("runtime class %q, handler %q: %s", *class, req.RuntimeHandler, sandboxFault(err))
	}
	return nil, errors.New(sandboxFault(err))
}

// sandboxFault is what the runtime says of a sandbox that it could not make, without the programs that the word came
// through and without the sandbox's id, which is another one at each try: the same fault has the same words, so that
// its events are counted and `wherry run` tells it once.
func sandboxFault(err error) string {
	words := cri.Message(err)
	for _, c := range []struct{ begins, instead string }{
		{`failed to start sandbox "`, ""},
		{`failed to create sandbox "`, ""},
		{`failed to start sandbox container task "`, ""},
		{`failed to setup network for sandbox "`, "failed to set up the network: "},
	} {
		rest, ok := strings.CutPrefix(words, c.begins)
		if !ok {
			continue
		}
		if _, rest, ok = strings.Cut(rest, `": `); ok && rest != "" {
			words = c.instead + rest
		}
	}
	return exitcode.Plain(words)
}
