// SPDX-License-Identifier: Apache-2.0

package podcert

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/watch"
)

// spread keeps pods that began together from asking anew together.
const spread = 5 * time.Minute

// certificate is one that a pod asks for. What run knows is run's; what readers see is guarded by mu.
type certificate struct {
	m      *Manager
	pod    *corev1.Pod
	want   *corev1.PodCertificateProjection
	cancel context.CancelFunc

	once     sync.Once
	answered chan struct{} // closed when there is a certificate or a refusal for the first time
	mu       sync.Mutex
	shown    shown
	trouble  error // why there is nothing to be seen yet
}

// request is one that is under way.
type request struct {
	name string
	key  []byte
}

// answer is what came of it: the request with the signer's verdict, or an error.
type answer struct {
	request
	seen *certificatesv1.PodCertificateRequest
	err  error
}

// run owns all that is known, decides, and acts, until ctx ends.
func (c *certificate) run(ctx context.Context) {
	var f facts
	failures, name := 0, ""         // of the request that is under way
	answers := make(chan answer, 1) // one request at a time
	for {
		now := c.m.cfg.Wall()
		s := next(f, now)
		if s.reportOverdue {
			f.reportedOverdue = true
			c.warn("CertificateOverdueForRefresh", "PodCertificate refresh overdue")
		}
		if s.reportEnd {
			f.reportedEnd = true
			c.warn("CertificateExpired", "PodCertificate expired")
		}
		if s.reportPending {
			f.reportedPending = true
			c.warn("PodCertificatePending", fmt.Sprintf("signer %s has not answered PodCertificateRequest %s/%s: "+
				"see that whoever signs for it runs", c.want.SignerName, c.pod.Namespace, name))
		}
		if s.ask {
			f.asked, f.askedAt = true, now
			name = "req-" + utilrand.String(12)
			c.m.wg.Go(func() { answers <- c.ask(ctx, name) })
			continue // when to look again is another time now
		}
		var wake <-chan time.Time
		if !s.again.IsZero() {
			wake = time.After(min(s.again.Sub(now), lookAgain))
		}
		select {
		case <-ctx.Done():
			return
		case <-wake:
		case a := <-answers:
			f.asked = false
			if ctx.Err() != nil {
				return
			}
			if a.err != nil {
				failures++
				f.notYet = c.m.cfg.Wall().Add(backOff(failures))
				c.fail(a.err)
				c.m.cfg.Logger.Warn("cannot get a pod's certificate, will try again", "pod",
					c.pod.Namespace+"/"+c.pod.Name, "signer", c.want.SignerName, "failures", failures, "err", a.err)
				continue
			}
			failures, f.notYet = 0, time.Time{}
			c.take(a, &f)
		}
	}
}

// take acts on a verdict.
func (c *certificate) take(a answer, f *facts) {
	name := a.seen.Namespace + "/" + a.seen.Name
	switch kind, reason, message := verdict(a.seen); kind {
	case certificatesv1.PodCertificateRequestConditionTypeIssued:
		status := &a.seen.Status
		*f = facts{has: true, renew: status.BeginRefreshAt.Add(rand.N(spread)), ends: status.NotAfter.Time}
		c.show(shown{key: a.key, chain: cleanChain([]byte(status.CertificateChain))})
	case certificatesv1.PodCertificateRequestConditionTypeDenied:
		f.refused = true
		c.warn(kind, fmt.Sprintf("PodCertificateRequest %s was denied, reason=%q, message=%q", name, reason, message))
		c.show(shown{err: fmt.Errorf("PodCertificateRequest was permanently denied: reason=%q message=%q", reason,
			message)})
	case certificatesv1.PodCertificateRequestConditionTypeFailed:
		f.refused = true
		c.warn(kind, fmt.Sprintf("PodCertificateRequest %s failed, reason=%q, message=%q", name, reason, message))
		c.show(shown{err: fmt.Errorf("PodCertificateRequest was permanently failed: reason=%q message=%q", reason,
			message)})
	}
}

func (c *certificate) warn(reason, message string) {
	c.m.cfg.Event(c.pod, corev1.EventTypeWarning, reason, message)
}

// ask makes a key and a request, and waits for the signer's verdict.
func (c *certificate) ask(ctx context.Context, name string) (a answer) {
	key, proof, err := newKey(c.want.KeyType)
	if err != nil {
		return answer{err: err}
	}
	spec, err := c.spec(ctx)
	if err != nil {
		return answer{err: err}
	}
	spec.StubPKCS10Request = proof
	made, err := c.m.cfg.Client.CertificatesV1().PodCertificateRequests(c.pod.Namespace).Create(ctx,
		&certificatesv1.PodCertificateRequest{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.pod.Namespace,
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: c.pod.Name,
					UID: c.pod.UID}}},
			Spec: *spec,
		}, metav1.CreateOptions{})
	if err != nil {
		return answer{err: fmt.Errorf("while creating PodCertificateRequest: %w", err)}
	}
	a.request = request{made.Name, key}
	a.seen, a.err = c.await(ctx, made.Name)
	return a
}

// spec says for whom the certificate is to be, with the UIDs that the signer can check.
func (c *certificate) spec(ctx context.Context) (*certificatesv1.PodCertificateRequestSpec, error) {
	core := c.m.cfg.Client.CoreV1()
	account := c.pod.Spec.ServiceAccountName
	sa, err := core.ServiceAccounts(c.pod.Namespace).Get(ctx, account, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("while fetching service account: %w", err)
	}
	node, err := core.Nodes().Get(ctx, c.m.cfg.Node, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("while fetching node: %w", err)
	}
	return &certificatesv1.PodCertificateRequestSpec{
		SignerName: c.want.SignerName, PodName: c.pod.Name, PodUID: c.pod.UID,
		ServiceAccountName: account, ServiceAccountUID: sa.UID,
		NodeName: types.NodeName(node.Name), NodeUID: node.UID,
		MaxExpirationSeconds: c.want.MaxExpirationSeconds, UnverifiedUserAnnotations: c.want.UserAnnotations,
	}, nil
}

// await follows a request until the signer has answered. One that is gone is an error: it is asked for anew.
func (c *certificate) await(ctx context.Context, name string) (*certificatesv1.PodCertificateRequest, error) {
	requests := c.m.cfg.Client.CertificatesV1().PodCertificateRequests(c.pod.Namespace)
	// Nodes may list what names them only.
	mine := metav1.ListOptions{FieldSelector: fields.SelectorFromSet(fields.Set{metav1.ObjectNameField: name,
		"spec.nodeName": c.m.cfg.Node}).String()}
	for failures := 0; ; {
		list, err := requests.List(ctx, mine)
		if err == nil {
			failures = 0
			seen := find(list.Items, name)
			if seen == nil {
				return nil, fmt.Errorf("PodCertificateRequest %s/%s was deleted before it was answered",
					c.pod.Namespace, name)
			}
			if kind, _, _ := verdict(seen); kind != "" {
				return seen, nil
			}
			from := mine
			from.ResourceVersion = list.ResourceVersion
			var w watch.Interface
			if w, err = requests.Watch(ctx, from); err == nil {
				if seen := follow(ctx, w, name); seen != nil {
					return seen, nil
				}
			}
		}
		if err != nil {
			failures++
			c.fail(err)
		}
		pause := time.NewTimer(backOff(max(1, failures)))
		select {
		case <-ctx.Done():
			pause.Stop()
			return nil, ctx.Err()
		case <-pause.C:
		}
	}
}

func find(list []certificatesv1.PodCertificateRequest, name string) *certificatesv1.PodCertificateRequest {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

// follow returns the request when it has been answered; nil: look again.
func follow(ctx context.Context, w watch.Interface, name string) *certificatesv1.PodCertificateRequest {
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, more := <-w.ResultChan():
			r, ok := e.Object.(*certificatesv1.PodCertificateRequest)
			if !more || !ok || e.Type == watch.Deleted {
				return nil
			}
			if kind, _, _ := verdict(r); kind != "" && r.Name == name {
				return r
			}
		}
	}
}
