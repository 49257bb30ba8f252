// SPDX-License-Identifier: Apache-2.0

package refs

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/wherryproject/wherry/internal/node/podcert"
)

// Config of Sources. Client is required.
type Config struct {
	Client kubernetes.Interface
	// Changed, if set, is called when something the pod refers to has changed: an object, or a token that is due for
	// renewal. It must not block.
	Changed func(types.UID)
	// Node is this node's name. Event, if set, records an event of a pod.
	Node  string
	Event func(pod *corev1.Pod, eventType, reason, message string)
	// Patience is how long to wait for an object that is not known because the API server does not answer; 0 means 5 s.
	Patience time.Duration
	Logger   *slog.Logger
	// Wall is the time of day; nil: this machine's. Without a monotonic reading, so that it goes with a clock that is
	// set.
	Wall func() time.Time
}

// Sources gives what pods refer to. Safe for concurrent use.
type Sources struct {
	cfg    Config
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex
	pods   map[types.UID]map[key]bool
	items  map[key]*item
	tokens map[tokenKey]*token

	bundles *bundles
	certs   *podcert.Manager
}

// New makes Sources; Close ends it.
func New(cfg Config) *Sources {
	if cfg.Wall == nil {
		cfg.Wall = func() time.Time { return time.Now().Round(0) }
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Changed == nil {
		cfg.Changed = func(types.UID) {}
	}
	if cfg.Patience == 0 {
		cfg.Patience = 5 * time.Second
	}
	if cfg.Event == nil {
		cfg.Event = func(*corev1.Pod, string, string, string) {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Sources{cfg: cfg, ctx: ctx, cancel: cancel,
		pods: map[types.UID]map[key]bool{}, items: map[key]*item{}, tokens: map[tokenKey]*token{},
		certs: podcert.New(podcert.Config{Client: cfg.Client, Node: cfg.Node, Changed: cfg.Changed, Event: cfg.Event,
			Logger: cfg.Logger, Wall: cfg.Wall})}
	s.bundles = newBundles(s)
	return s
}

// Close ends all watches and timers and waits for them.
func (s *Sources) Close() {
	s.cancel()
	s.mu.Lock()
	for k := range s.tokens {
		s.drop(k)
	}
	s.mu.Unlock()
	s.certs.Close()
	s.wg.Wait()
}

// Register begins to watch what the pod names. Repeated for a pod, it brings the set up to date: a pod gets ephemeral
// containers.
func (s *Sources) Register(pod *corev1.Pod) {
	want := map[key]bool{}
	configMaps, secrets := Names(pod)
	for _, n := range configMaps {
		want[key{configMapKind, pod.Namespace, n}] = true
	}
	for _, n := range secrets {
		want[key{secretKind, pod.Namespace, n}] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return
	}
	had := s.pods[pod.UID]
	s.pods[pod.UID] = want
	for k := range want {
		s.join(k, pod.UID)
	}
	for k := range had {
		if !want[k] {
			s.leave(k, pod.UID)
		}
	}
	s.bundles.register(pod)
	s.certs.Register(pod)
}

// Unregister ends the watches that only this pod needed, and forgets its tokens and certificates.
func (s *Sources) Unregister(uid types.UID) {
	s.bundles.unregister(uid)
	s.certs.Unregister(uid)
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.pods[uid] {
		s.leave(k, uid)
	}
	delete(s.pods, uid)
	for k := range s.tokens {
		if k.pod == uid {
			s.drop(k)
		}
	}
}

// ConfigMap gives the named ConfigMap. It waits until it is known to exist or to be absent; absent is an error for
// which apierrors.IsNotFound holds. Of objects that no registered pod names it asks the API server. The object must not
// be changed.
func (s *Sources) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	obj, err := s.object(ctx, key{configMapKind, namespace, name})
	if err != nil {
		return nil, err
	}
	return obj.(*corev1.ConfigMap), nil // what the kind's functions return
}

// Secret is like ConfigMap.
func (s *Sources) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	obj, err := s.object(ctx, key{secretKind, namespace, name})
	if err != nil {
		return nil, err
	}
	return obj.(*corev1.Secret), nil // what the kind's functions return
}

// PodCertificate gives the key and the certificates that a source of a volume shows, in PEM. With wait it waits a while
// for the first ones. Only registered pods have any.
func (s *Sources) PodCertificate(ctx context.Context, pod *corev1.Pod, volume string, source int,
	wait bool) (key, chain []byte, err error) {
	return s.certs.Get(ctx, pod.UID, volume, source, wait)
}

// PullSecrets gives the pod's pull secrets, or if it names none those of its service account, and the names of those
// that do not exist. The error is of the first that could not be read for another reason; the others are given all the
// same.
func (s *Sources) PullSecrets(ctx context.Context,
	pod *corev1.Pod) (found []*corev1.Secret, missing []string, err error) {
	refs := pod.Spec.ImagePullSecrets
	if len(refs) == 0 {
		refs = s.accountSecrets(ctx, pod)
	}
	for _, r := range refs {
		secret, e := s.Secret(ctx, pod.Namespace, r.Name)
		switch {
		case e == nil:
			found = append(found, secret)
		case apierrors.IsNotFound(e):
			missing = append(missing, r.Name)
		case err == nil:
			err = fmt.Errorf("pull secret %s: %w", r.Name, e)
		}
	}
	return found, missing, err
}

// accountSecrets: most API servers have put the account's pull secrets into the pod already and let no node read the
// account; so no answer is no error.
func (s *Sources) accountSecrets(ctx context.Context, pod *corev1.Pod) []corev1.LocalObjectReference {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Patience)
	defer cancel()
	sa, err := s.cfg.Client.CoreV1().ServiceAccounts(pod.Namespace).Get(ctx, accountOf(pod), metav1.GetOptions{})
	if err != nil {
		s.cfg.Logger.Debug("cannot read the service account for pull secrets", "pod", pod.Namespace+"/"+pod.Name,
			"account", accountOf(pod), "err", err)
		return nil
	}
	return sa.ImagePullSecrets
}

func accountOf(pod *corev1.Pod) string {
	if pod.Spec.ServiceAccountName == "" {
		return "default"
	}
	return pod.Spec.ServiceAccountName
}
