// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// runtimeClasses knows the handlers of runtime classes. It asks when a pod of one needs a sandbox, which is seldom; a
// handler never changes, so while the API server is away the last answer does.
type runtimeClasses struct {
	client kubernetes.Interface

	mu    sync.Mutex
	known map[string]string
}

func newRuntimeClasses(client kubernetes.Interface) *runtimeClasses {
	return &runtimeClasses{client: client, known: map[string]string{}}
}

// handlerOf returns the handler of a class.
func (c *runtimeClasses) handlerOf(ctx context.Context, name string) (string, error) {
	if c.client == nil {
		return "", fmt.Errorf("cannot look up RuntimeClass %q: this agent has no API server", name)
	}
	ctx, cancel := context.WithTimeout(ctx, apiPatience)
	defer cancel()
	class, err := c.client.NodeV1().RuntimeClasses().Get(ctx, name, metav1.GetOptions{})
	c.mu.Lock()
	defer c.mu.Unlock()
	switch last, ok := c.known[name]; {
	case err == nil:
		c.known[name] = class.Handler
		return class.Handler, nil
	case apierrors.IsNotFound(err):
		delete(c.known, name)
		return "", fmt.Errorf("RuntimeClass %q not found: create it, or give the pod another runtimeClassName", name)
	case ok:
		return last, nil
	}
	return "", fmt.Errorf("cannot look up RuntimeClass %q: %w", name, err)
}
