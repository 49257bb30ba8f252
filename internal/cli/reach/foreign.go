// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/serverkind"
)

// Foreign is the error of a request that Wherry's API server alone understands, where another one is (DA-10).
type Foreign struct {
	Serves bool // debug.wherry.dev, so that there is another way
	why    string
}

func (f *Foreign) Error() string { return f.why }

// Elsewhere reports whether the server is another than Wherry's, and what it has; nil where it is Wherry's.
func (c *Client) Elsewhere(ctx context.Context) (*Foreign, error) {
	base, _, err := rest.DefaultServerUrlFor(c.Config)
	if err != nil {
		return nil, err
	}
	return c.foreign(ctx, base)
}

// foreign finds out which API server other than Wherry's is there, and whether debug.wherry.dev is installed in its
// cluster; nil where it is Wherry's. This machine's own is not asked.
func (c *Client) foreign(ctx context.Context, base *url.URL) (*Foreign, error) {
	if c.socket != "" || c.wherry {
		return nil, nil
	}
	client, err := rest.HTTPClientFor(c.Config)
	if err != nil {
		return nil, err
	}
	is, err := serverkind.Ask(ctx, client, base)
	if err != nil {
		return nil, err
	}
	if is {
		c.wherry = true
		return nil, nil
	}
	f := &Foreign{why: fmt.Sprintf("the API server at %s is not Wherry's, and would take this for a command in the pod's own container",
		base.Host)}
	status, err := serverkind.Serves(ctx, client, base, wire.Base)
	if err != nil {
		return nil, err
	}
	f.Serves = status == http.StatusOK
	f.why += advice(status)
	return f, nil
}

// advice is what to do, by the answer to whether a cluster has debug.wherry.dev. (Pure.)
func advice(status int) string {
	switch status {
	case http.StatusOK:
		return ""
	case http.StatusNotFound:
		return "; wherry cluster install makes it possible there"
	case http.StatusServiceUnavailable:
		return "; " + wire.Group +
			" is installed in this cluster, but does not answer (wherry cluster status says more)"
	}
	return fmt.Sprintf("; whether %s is installed in this cluster cannot be told: it answers %d %s when it is asked for %s",
		wire.Group, status, http.StatusText(status), wire.Base)
}

// NoAgent reports whether a cluster has debug.wherry.dev but no agent on the pod's node (DA-10).
func NoAgent(err error) bool {
	var refused apierrors.APIStatus
	return errors.As(err, &refused) && refused.Status().Reason == metav1.StatusReason(wire.ReasonNoAgent)
}

// roleAdvice adds to a refusal by a cluster's own API server which of the roles that come with debug.wherry.dev has the
// right that is missing. What the API itself refuses says so already.
func roleAdvice(err error, subresource, namespace string) error {
	var refused apierrors.APIStatus
	if !errors.As(err, &refused) || refused.Status().Reason != metav1.StatusReasonForbidden ||
		!strings.Contains(refused.Status().Message, wire.Group) {
		return err
	}
	return withRole(err, subresource, namespace)
}

// withRole adds to a refusal which role would do; to one that says so itself nothing.
func withRole(err error, subresource, namespace string) error {
	if strings.Contains(err.Error(), "ClusterRole") {
		return err
	}
	role := "wherry-debug"
	if slices.Contains([]string{wire.Files, wire.Evidence, LookAtSessions}, subresource) {
		role = "wherry-look"
	}
	where := "in namespace " + namespace
	if namespace == metav1.NamespaceAll {
		where = "in a namespace, which is named then with -n"
	}
	return fmt.Errorf("%w\nthe ClusterRole %s has that right; who administers the cluster gives it by kubectl create rolebinding, %s",
		err, role, where)
}

// LookAtSessions is the right to see who debugs, which is less than that to end it.
const LookAtSessions = wire.Sessions + "/look"

// RoleAdvice adds to any refusal for want of rights, of what a command looks at before it asks for a session too, which
// role would do, where the cluster has debug.wherry.dev.
func (c *Client) RoleAdvice(ctx context.Context, err error, subresource, namespace string) error {
	if err == nil || !apierrors.IsForbidden(err) {
		return err
	}
	if foreign, ferr := c.Elsewhere(ctx); ferr != nil || foreign == nil || !foreign.Serves {
		return err
	}
	return withRole(err, subresource, namespace)
}
