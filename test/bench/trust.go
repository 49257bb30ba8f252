// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	creators   = 32   // clients that create at the same time
	createdPer = 40   // pods that each creates in one turn
	turns      = 5    // of each side
	manyPods   = 5000 // in one list
	chunk      = 500  // of that list
	watchers   = 200
	watched    = 100 // pods that are made under the eyes of the watchers
)

// trust: what it costs that a server trusts nobody. One side is a user whose rights are two role bindings, in a
// namespace with Pod Security, with the audit log; the other the administrator of a server without any of these.
func (b *bench) trust(ctx context.Context) (results []result, err error) {
	on, err := b.side(ctx, "trust-on")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, on.purge()) }()
	off, err := b.side(ctx, "trust-off", "--audit-log-path=none")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, off.purge()) }()

	user, err := limitedUser(ctx, on.dataDir)
	if err != nil {
		return nil, err
	}
	create := func(client []kubernetes.Interface) func(context.Context) (map[string]time.Duration, error) {
		return func(ctx context.Context) (map[string]time.Duration, error) {
			took, err := createAtOnce(ctx, client)
			return map[string]time.Duration{"creates": took}, errors.Join(err, emptied(ctx, client[0]))
		}
	}
	admins, err := clones(off.dataDir, nil)
	if err != nil {
		return nil, err
	}
	users, err := clones(on.dataDir, user)
	if err != nil {
		return nil, err
	}
	s, err := inTurns(ctx, turns, create(users), create(admins))
	if err != nil {
		return nil, err
	}
	n := creators * createdPer
	rate := func(d time.Duration) float64 { return float64(n) / d.Seconds() }
	fresh, bare := s[0].median("creates"), s[1].median("creates")
	results = append(results,
		result{What: fmt.Sprintf("%d pods created by %d clients, RBAC + audit + Pod Security on (bare: off)", n,
			creators),
			Figure: fresh, Bare: bare, MaxRatio: 1 / 0.8, Note: fmt.Sprintf("%.0f a second; off %.0f", rate(fresh),
				rate(bare))})
	more, err := b.manyWatchers(ctx, on)
	return append(results, more...), err
}

// side starts a server of its own for one side.
func (b *bench) side(ctx context.Context, name string, flags ...string) (*server, error) {
	v, err := startServer(ctx, b.settings, filepath.Join(b.dir, name), flags...)
	if err != nil {
		return nil, err
	}
	if err := v.ready(ctx); err != nil {
		return nil, errors.Join(err, v.purge())
	}
	return v, nil
}

// limitedUser makes a service account that may edit the namespace, which must keep to Pod Security's baseline, and
// returns its token.
func limitedUser(ctx context.Context, dataDir string) (token *string, err error) {
	client, err := connect(dataDir)
	if err != nil {
		return nil, err
	}
	labels := `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"baseline","pod-security.kubernetes.io/audit":"restricted"}}}`
	if _, err := client.CoreV1().Namespaces().Patch(ctx, namespace, types.MergePatchType, []byte(labels),
		metav1.PatchOptions{}); err != nil {
		return nil, err
	}
	const name = "creator"
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := client.CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	for _, role := range []string{"edit", "view"} {
		binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: namespace}}}
		if _, err := client.RbacV1().RoleBindings(namespace).Create(ctx, binding, metav1.CreateOptions{}); err != nil {
			return nil, err
		}
	}
	hour := int64(3600)
	made, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hour}},
		metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return &made.Status.Token, nil
}

// clones are clients with a connection each, of the token's owner or the administrator.
func clones(dataDir string, token *string) (all []kubernetes.Interface, err error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig(dataDir))
	if err != nil {
		return nil, err
	}
	if token != nil {
		config = rest.AnonymousClientConfig(config)
		config.BearerToken = *token
	}
	config.QPS = -1
	for range creators {
		own := rest.CopyConfig(config)
		own.Dial = dialer() // what differs has a connection of its own
		client, err := kubernetes.NewForConfig(own)
		if err != nil {
			return nil, err
		}
		all = append(all, client)
	}
	return all, nil
}

// idlePod is a pod that no scheduler takes: only the API is to work.
func idlePod(name string) *corev1.Pod {
	p := pod(name)
	p.Spec.SchedulerName = "nobody"
	return p
}

func createAtOnce(ctx context.Context, clients []kubernetes.Interface) (time.Duration, error) {
	var group sync.WaitGroup
	errs := make([]error, len(clients))
	begun := time.Now()
	for i, client := range clients {
		group.Go(func() {
			for j := range createdPer {
				if _, err := client.CoreV1().Pods(namespace).Create(ctx, idlePod(fmt.Sprintf("p-%d-%d", i, j)),
					metav1.CreateOptions{}); err != nil {
					errs[i] = err
					return
				}
			}
		})
	}
	group.Wait()
	return time.Since(begun), errors.Join(errs...)
}

// emptied deletes all pods; those that no node has are gone at once.
func emptied(ctx context.Context, client kubernetes.Interface) error {
	return client.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
}

// manyWatchers: a long list, and many who watch.
func (b *bench) manyWatchers(ctx context.Context, v *server) ([]result, error) {
	clients, err := clones(v.dataDir, nil)
	if err != nil {
		return nil, err
	}
	if err := fill(ctx, clients); err != nil {
		return nil, err
	}
	took := samples{}
	for range b.n {
		begun := time.Now()
		if err := listAll(ctx, clients[0]); err != nil {
			return nil, err
		}
		took["list"] = append(took["list"], time.Since(begun))
	}
	rss, _, err := memory(v.pid())
	if err != nil {
		return nil, err
	}
	last, err := fanOut(ctx, v.dataDir, clients[0])
	if err != nil {
		return nil, err
	}
	after, _, err := memory(v.pid())
	if err != nil {
		return nil, err
	}
	return []result{
		{What: fmt.Sprintf("list of %d pods in chunks of %d", manyPods, chunk), Figure: took.median("list")},
		{What: "… server process RSS after it", Bytes: rss},
		{What: fmt.Sprintf("%d pods made under %d watchers: the last one's create returned → the last watcher has seen all", watched, watchers), Figure: last,
			Note: "no watcher dropped"},
		{What: "… server process RSS after it", Bytes: after},
	}, nil
}

func fill(ctx context.Context, clients []kubernetes.Interface) error {
	var next atomic.Int64
	var group sync.WaitGroup
	errs := make([]error, len(clients))
	for i, client := range clients {
		group.Go(func() {
			for n := next.Add(1); n <= manyPods; n = next.Add(1) {
				if _, err := client.CoreV1().Pods(namespace).Create(ctx, idlePod(fmt.Sprintf("many-%d", n)),
					metav1.CreateOptions{}); err != nil {
					errs[i] = err
					return
				}
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func listAll(ctx context.Context, client kubernetes.Interface) error {
	options, n := metav1.ListOptions{Limit: chunk}, 0
	for {
		list, err := client.CoreV1().Pods(namespace).List(ctx, options)
		if err != nil {
			return err
		}
		n += len(list.Items)
		if options.Continue = list.Continue; options.Continue == "" {
			break
		}
	}
	if n != manyPods {
		return fmt.Errorf("the list in chunks has %d pods, want %d", n, manyPods)
	}
	return nil
}
