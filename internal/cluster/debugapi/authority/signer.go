// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"context"
	"fmt"
	"log/slog"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/wherryproject/wherry/internal/cluster/wire"
)

// Signer grants and signs the requests of agents.
type Signer struct {
	Client    kubernetes.Interface
	Authority *Authority
	Agents    Agents
	Log       *slog.Logger
}

// Run follows the requests until ctx is done.
func (s *Signer) Run(ctx context.Context) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	defer queue.ShutDown()
	factory := informers.NewSharedInformerFactoryWithOptions(s.Client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("spec.signerName", wire.SignerName).String()
		}))
	requests := factory.Certificates().V1().CertificateSigningRequests()
	add := func(obj any) {
		if csr, ok := obj.(*certificatesv1.CertificateSigningRequest); ok {
			queue.Add(csr.Name)
		}
	}
	if _, err := requests.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add,
		UpdateFunc: func(_, obj any) { add(obj) }}); err != nil {
		s.Log.Error("requests of agents cannot be followed", "err", err)
		return
	}
	factory.StartWithContext(ctx)
	defer context.AfterFunc(ctx, queue.ShutDown)()
	for {
		name, stopped := queue.Get()
		if stopped {
			return
		}
		csr, err := requests.Lister().Get(name)
		if err == nil {
			err = s.handle(ctx, csr)
		}
		switch {
		case err == nil, apierrors.IsNotFound(err):
			queue.Forget(name)
		default:
			if !apierrors.IsConflict(err) { // another replica was faster, which the next look shows
				s.Log.Error("the request of an agent cannot be answered", "request", name, "err", err)
			}
			queue.AddRateLimited(name)
		}
		queue.Done(name)
	}
}

// handle brings one request to its end. An approval by somebody else is no reason to sign.
func (s *Signer) handle(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) error {
	state := stateOf(csr)
	if state == over || csr.Spec.SignerName != wire.SignerName {
		return nil
	}
	pod, err := s.pod(ctx, csr)
	if err != nil {
		return err
	}
	request, judged := s.Agents.Judge(csr, pod)
	csr = csr.DeepCopy()
	requests := s.Client.CertificatesV1().CertificateSigningRequests()
	if judged != nil {
		s.Log.Warn("the request of an agent is refused", "request", csr.Name, "by", csr.Spec.Username, "why", judged)
		if state == approved { // it cannot be denied any more
			csr.Status.Conditions = append(csr.Status.Conditions,
				condition(certificatesv1.CertificateFailed, "NotAnAgent",
					judged.Error()))
			_, err = requests.UpdateStatus(ctx, csr, metav1.UpdateOptions{})
			return err
		}
		csr.Status.Conditions = append(csr.Status.Conditions, condition(certificatesv1.CertificateDenied, "NotAnAgent",
			judged.Error()))
		_, err = requests.UpdateApproval(ctx, csr.Name, csr, metav1.UpdateOptions{})
		return err
	}
	if state == pending {
		csr.Status.Conditions = append(csr.Status.Conditions,
			condition(certificatesv1.CertificateApproved, "AgentOfNode",
				fmt.Sprintf("pod %s runs on node %s", pod.Name, pod.Spec.NodeName)))
		if csr, err = requests.UpdateApproval(ctx, csr.Name, csr, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	if csr.Status.Certificate, err = s.Authority.Sign(request, lifetime(csr)); err != nil {
		return err
	}
	_, err = requests.UpdateStatus(ctx, csr, metav1.UpdateOptions{})
	return err
}

// pod is the one that asks; nil if nobody does who may, or it is not there.
func (s *Signer) pod(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) (*corev1.Pod, error) {
	who, err := s.Agents.Who(csr)
	if err != nil {
		return nil, nil
	}
	pod, err := s.Client.CoreV1().Pods(s.Agents.Namespace).Get(ctx, who.Pod, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return pod, err
}

func condition(kind certificatesv1.RequestConditionType, reason, message string) certificatesv1.
	CertificateSigningRequestCondition {
	return certificatesv1.CertificateSigningRequestCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason,
		Message: message}
}
