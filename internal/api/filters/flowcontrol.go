// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/flowcontrol"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/api/kinds"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/schemes"
)

// FlowControl shares out what the server can serve at a time (KEP-1040): the library decides, by the objects it finds;
// this keeps the objects that every cluster has.
type FlowControl struct {
	stores    registry.Stores
	schemes   *schemes.Schemes
	log       *slog.Logger
	informers informers.SharedInformerFactory
}

// NewFlowControl gives the library's handlers priority and fairness. Its limit is that of the plain limits together;
// perUser is that of one user. client is how the library reads the objects.
func NewFlowControl(c *genericapiserver.Config, client *restclient.Config, perUser int, stores registry.Stores,
	types *schemes.Schemes, log *slog.Logger) (*FlowControl, error) {
	clients, err := kubernetes.NewForConfig(client)
	if err != nil {
		return nil, err
	}
	f := &FlowControl{stores: stores, schemes: types, log: log,
		informers: informers.NewSharedInformerFactory(clients, 0)}
	shared := flowcontrol.New(f.informers, clients.FlowcontrolV1(), c.MaxRequestsInFlight+c.MaxMutatingRequestsInFlight)
	c.FlowControl = newTurns(shared, perUser)
	return f, nil
}

// Run makes what is missing and watches what there is, until ctx is done.
func (f *FlowControl) Run(ctx context.Context) {
	f.informers.Start(ctx.Done())
	registry.Persist(ctx, f.log, "making the flow schemas and priority levels", f.ensureAll)
	<-ctx.Done()
	f.informers.Shutdown()
}

// ensureAll makes and mends the mandatory objects, and makes the suggested ones that are missing.
func (f *FlowControl) ensureAll(ctx context.Context) error {
	var errs []error
	for _, p := range bootstrap.MandatoryPriorityLevelConfigurations {
		errs = append(errs, f.ensure(ctx, kinds.PriorityLevels, p.DeepCopy(), true))
	}
	for _, p := range bootstrap.SuggestedPriorityLevelConfigurations {
		errs = append(errs, f.ensure(ctx, kinds.PriorityLevels, p.DeepCopy(), false))
	}
	for _, s := range bootstrap.MandatoryFlowSchemas {
		errs = append(errs, f.ensure(ctx, kinds.FlowSchemas, s.DeepCopy(), true))
	}
	for _, s := range bootstrap.SuggestedFlowSchemas {
		errs = append(errs, f.ensure(ctx, kinds.FlowSchemas, s.DeepCopy(), false))
	}
	return errors.Join(errs...)
}

// ensure makes an object unless it is there. One that is there and the server's to keep, by its annotation, gets the
// server's specification
// (https://kubernetes.io/docs/concepts/cluster-administration/flow-control/#maintenance-of-the-mandatory-and-suggested-configuration-objects).
func (f *FlowControl) ensure(ctx context.Context, plural string, want runtime.Object, mandatory bool) error {
	m := want.(metav1.Object)
	m.SetAnnotations(map[string]string{flowcontrolv1.AutoUpdateAnnotationKey: fmt.Sprint(true)})
	store := f.stores[plural]
	ctx = store.Within(ctx, "")
	have, err := store.Get(ctx, m.GetName(), &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return f.stores.Ensure(ctx, f.schemes, plural, "", want)
	}
	if err != nil {
		return err
	}
	note, noted := have.(metav1.Object).GetAnnotations()[flowcontrolv1.AutoUpdateAnnotationKey]
	ours := mandatory || note == "true" || !noted && have.(metav1.Object).GetGeneration() == 1
	next := have.DeepCopyObject()
	if !ours || !takeSpec(next, want) {
		return nil
	}
	_, _, err = store.Update(ctx, m.GetName(), rest.DefaultUpdatedObjectInfo(next), rest.ValidateAllObjectFunc,
		rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("update %s %s: %w", store.Kind.Singular, m.GetName(), err)
	}
	return nil
}

// takeSpec takes the specification over and says whether it was another. What an administrator may set of the exempt
// level stays.
func takeSpec(have, want runtime.Object) bool {
	switch have := have.(type) {
	case *flowcontrolv1.FlowSchema:
		spec := want.(*flowcontrolv1.FlowSchema).Spec
		if equality.Semantic.DeepEqual(have.Spec, spec) {
			return false
		}
		have.Spec = spec
	case *flowcontrolv1.PriorityLevelConfiguration:
		spec := want.(*flowcontrolv1.PriorityLevelConfiguration).Spec
		if spec.Type == flowcontrolv1.PriorityLevelEnablementExempt && have.Spec.Exempt != nil {
			spec.Exempt = have.Spec.Exempt
		}
		if equality.Semantic.DeepEqual(have.Spec, spec) {
			return false
		}
		have.Spec = spec
	}
	return true
}
