// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/wherryproject/wherry/internal/api/nodenetwork"
	"github.com/wherryproject/wherry/internal/controllers/nodeipam"
	"github.com/wherryproject/wherry/internal/noderoutes"
	"github.com/wherryproject/wherry/internal/serverkind"
)

const (
	askPatience = 5 * time.Second // for the API server's first answer
	askAgain    = 250 * time.Millisecond
	// givePatience is how long a wherry server may take to give the node a network; others perhaps give none.
	givePatience  = 30 * time.Second
	otherPatience = 3 * time.Second
)

// ErrNoNetwork says that a wherry server, which gives each node a network of its pods, has given none.
var ErrNoNetwork = errors.New("the server has not given this node a network for its pods")

// Config says who asks what.
type Config struct {
	Client kubernetes.Interface
	Node   string // its name
	// Object makes its object, where there is none yet.
	Object func() *corev1.Node
	// Chosen are the pod networks that the user has chosen, Before those of the last start, and Held those among them
	// that pods have addresses of now.
	Chosen, Before, Held []netip.Prefix
	// File keeps what was learnt, for starts without an API server.
	File string
}

// Membership is what was learnt.
type Membership struct {
	// Server is a wherry server's; nil: the cluster is another one's, or it is not known.
	Server *nodenetwork.Cluster
	// Networks are those of the node's pods; none: the machine chooses itself.
	Networks []netip.Prefix
	// Given is what the cluster has given the node, if that is not Networks: pods run that have addresses of others.
	Given []netip.Prefix
	// Asked says that the API server has answered.
	Asked bool
}

// Learn asks the API server. If that does not answer in a few seconds, what was learnt before holds. An error is
// [ErrNoNetwork], that a network was chosen which the node does not have, or the end of ctx.
func Learn(ctx context.Context, c Config) (Membership, error) {
	server, err := ask(ctx, c.Client)
	if err != nil {
		if ctx.Err() != nil {
			return Membership{}, ctx.Err()
		}
		return c.remembered(), nil
	}
	m := Membership{Server: server, Asked: true}
	given, err := c.network(ctx, server != nil)
	if err != nil {
		return m, err
	}
	if m.Networks, m.Given, err = fixed(c, given); err != nil {
		return m, err
	}
	return m, c.remember(m)
}

// Cluster asks a wherry server anew what its cluster is; nil if another one answers.
func Cluster(ctx context.Context, client kubernetes.Interface) (*nodenetwork.Cluster, error) {
	return ask(ctx, client)
}

// ask asks whether a wherry server is there; nil if another one is.
func ask(ctx context.Context, client kubernetes.Interface) (*nodenetwork.Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	api := client.Discovery().RESTClient()
	text, err := api.Get().AbsPath(nodenetwork.Path).DoRaw(ctx)
	for apierrors.IsForbidden(err) { // any other server says so too, of a path that it does not have
		var is bool
		if is, err = isWherry(ctx, api); err != nil || !is {
			return nil, err
		}
		// One that is starting has not given nodes their rights yet. Taking it for another's would end policies.
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the server does not let this node read %s yet", nodenetwork.Path)
		case <-time.After(askAgain):
		}
		text, err = api.Get().AbsPath(nodenetwork.Path).DoRaw(ctx)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var c nodenetwork.Cluster
	if json.Unmarshal(text, &c) != nil {
		return nil, nil // some other server answers everything
	}
	return &c, nil
}

// isWherry decides by its version whether an API server is wherry's.
func isWherry(ctx context.Context, api rest.Interface) (bool, error) {
	text, err := api.Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		return false, err
	}
	return serverkind.Is(text), nil
}

// fixed decides which networks the pods have, of what the cluster has given the node, if anything. (Pure.)
func fixed(c Config, given []netip.Prefix) (networks, instead []netip.Prefix, err error) {
	switch {
	case len(given) == 0:
		return nil, nil, nil
	case len(c.Held) > 0 && !slices.Equal(c.Before, given):
		return c.Before, given, nil
	case len(c.Chosen) > 0 && !slices.Equal(c.Chosen, given):
		return nil, nil,
			fmt.Errorf("--pod-cidr: the cluster has given this node %s, not %s: start without --pod-cidr, or delete the node's object (kubectl delete node %s) so that it is given another one",
				nodeipam.Join(given), nodeipam.Join(c.Chosen), c.Node)
	}
	return given, nil, nil
}

// network is what the cluster has given the node. It makes the node's object if there is none, and waits for it.
func (c Config) network(ctx context.Context, wherry bool) ([]netip.Prefix, error) {
	patience := otherPatience
	if wherry {
		patience = givePatience
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	node, isNew, err := c.object(ctx)
	if err == nil && len(noderoutes.Networks(node)) == 0 && (wherry || isNew) {
		node, err = c.given(ctx)
	}
	switch {
	case err == nil:
		return noderoutes.Networks(node), nil
	case !wherry:
		return nil, nil // the agent makes the object, and says what is wrong with that
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, ErrNoNetwork
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, fmt.Errorf("node %s: %w", c.Node, err)
}

// object is the node's object, with the request for a network; isNew says that it was made.
func (c Config) object(ctx context.Context) (node *corev1.Node, isNew bool, err error) {
	nodes := c.Client.CoreV1().Nodes()
	requested := nodeipam.Join(c.requested())
	node, err = nodes.Get(ctx, c.Node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		node = c.Object()
		if requested != "" {
			node.Annotations = map[string]string{nodeipam.RequestedNetworks: requested}
		}
		node, err = nodes.Create(ctx, node, metav1.CreateOptions{})
		return node, true, err
	}
	if err != nil || requested == "" || node.Annotations[nodeipam.RequestedNetworks] == requested ||
		len(noderoutes.Networks(node)) > 0 {
		return node, false, err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		nodeipam.RequestedNetworks: requested}}})
	if err != nil {
		return nil, false, err
	}
	node, err = nodes.Patch(ctx, c.Node, types.MergePatchType, patch, metav1.PatchOptions{})
	return node, false, err
}

// requested is the network that the node requests.
func (c Config) requested() []netip.Prefix {
	if len(c.Chosen) > 0 && len(c.Held) == 0 {
		return c.Chosen
	}
	return c.Before
}

// given waits until the node has a network.
func (c Config) given(ctx context.Context) (*corev1.Node, error) {
	lw := cache.NewListWatchFromClient(c.Client.CoreV1().RESTClient(), "nodes", metav1.NamespaceAll,
		fields.OneTermEqualSelector("metadata.name", c.Node))
	event, err := watchtools.UntilWithSync(ctx, lw, &corev1.Node{}, nil, func(e watch.Event) (bool, error) {
		n, ok := e.Object.(*corev1.Node)
		return ok && e.Type != watch.Deleted && len(noderoutes.Networks(n)) > 0, nil
	})
	if err != nil {
		return nil, err
	}
	node, ok := event.Object.(*corev1.Node)
	if !ok {
		return nil, fmt.Errorf("node %s: %T", c.Node, event.Object)
	}
	return node, nil
}

// remembered is what was learnt at an earlier start.
func (c Config) remembered() Membership {
	var m Membership
	text, err := os.ReadFile(c.File)
	if err != nil {
		return m // it is the first start
	}
	var server nodenetwork.Cluster
	if json.Unmarshal(text, &server) == nil {
		m.Server = &server
	}
	m.Networks = c.Before
	return m
}

func (c Config) remember(m Membership) error {
	if m.Server == nil {
		if err := os.Remove(c.File); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	text, err := json.Marshal(m.Server)
	if err != nil {
		return err
	}
	tmp := c.File + ".new"
	if err := os.WriteFile(tmp, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, c.File)
}
