// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/validation/flowcontrol"
)

const (
	FlowSchemas    = "flowschemas"
	PriorityLevels = "prioritylevelconfigurations"
)

// flowControlKinds say how what the server can serve is shared out.
func flowControlKinds() []*registry.Kind {
	gv := flowcontrolv1.SchemeGroupVersion
	spec := fieldpath.NewSet(fieldpath.MakePathOrDie("spec"))
	rest := fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	return []*registry.Kind{
		{GV: gv, Name: "FlowSchema", Plural: FlowSchemas, Singular: "flowschema",
			Object: registry.New[flowcontrolv1.FlowSchema], List: registry.New[flowcontrolv1.FlowSchemaList],
			Rules: registry.Typed[*flowcontrolv1.FlowSchema]{
				PrepareCreate: func(s *flowcontrolv1.FlowSchema) {
					s.Status, s.Generation = flowcontrolv1.FlowSchemaStatus{}, 1
				},
				Validate: flowcontrol.ValidateFlowSchema,
				PrepareUpdate: func(s, old *flowcontrolv1.FlowSchema) {
					s.Status = old.Status
					if !equality.Semantic.DeepEqual(s.Spec, old.Spec) {
						s.Generation = old.Generation + 1
					}
				},
				ValidateUpdate: flowcontrol.ValidateFlowSchemaUpdate,
				Reset:          rest,
			}.Rules(),
			Status: status(registry.Typed[*flowcontrolv1.FlowSchema]{
				PrepareUpdate: func(s,
					old *flowcontrolv1.FlowSchema) {
					keepMeta(&s.ObjectMeta, &old.ObjectMeta)
					s.Spec = old.Spec
				},
				ValidateUpdate: flowcontrol.ValidateFlowSchemaUpdate,
				Reset:          spec,
			}.Rules())},
		{GV: gv, Name: "PriorityLevelConfiguration", Plural: PriorityLevels, Singular: "prioritylevelconfiguration",
			Object: registry.New[flowcontrolv1.PriorityLevelConfiguration],
			List:   registry.New[flowcontrolv1.PriorityLevelConfigurationList],
			Rules: registry.Typed[*flowcontrolv1.PriorityLevelConfiguration]{
				PrepareCreate: func(p *flowcontrolv1.PriorityLevelConfiguration) {
					p.Status, p.Generation = flowcontrolv1.PriorityLevelConfigurationStatus{}, 1
				},
				Validate: flowcontrol.ValidatePriorityLevelConfiguration,
				PrepareUpdate: func(p, old *flowcontrolv1.PriorityLevelConfiguration) {
					p.Status = old.Status
					if !equality.Semantic.DeepEqual(p.Spec, old.Spec) {
						p.Generation = old.Generation + 1
					}
				},
				ValidateUpdate: flowcontrol.ValidatePriorityLevelConfigurationUpdate,
				Reset:          rest,
			}.Rules(),
			Status: status(registry.Typed[*flowcontrolv1.PriorityLevelConfiguration]{
				PrepareUpdate: func(p, old *flowcontrolv1.PriorityLevelConfiguration) {
					keepMeta(&p.ObjectMeta, &old.ObjectMeta)
					p.Spec = old.Spec
				},
				ValidateUpdate: flowcontrol.ValidatePriorityLevelConfigurationUpdate,
				Reset:          spec,
			}.Rules())},
	}
}

// keepMeta keeps the metadata, but for the record of who manages which field: a status is written without it.
func keepMeta(now, old *metav1.ObjectMeta) {
	managed := now.ManagedFields
	*now = *old.DeepCopy()
	now.ManagedFields = managed
}
