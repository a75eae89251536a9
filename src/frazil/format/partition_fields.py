"""Partition fields made from several columns: `bucket[16](a, b)`, in JSON `source-ids`.

PyIceberg's `PartitionField` has one source. `JointField` adds the others; its transform is a class
of its own, so that whatever asks a transform of one column gets no answer from it rather than a
wrong one. The values are computed in `frazil.filter.transforms`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pydantic import Field, PrivateAttr
from pyiceberg.expressions import BoundPredicate, UnboundPredicate
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import (
    BucketTransform,
    Transform,
    UnknownTransform,
    VoidTransform,
    parse_transform,
)
from pyiceberg.types import IcebergType, IntegerType

from frazil.errors import InvalidInput

MAX_SOURCES: Final = 32
"""More columns than anybody partitions by together; a limit for what is read from JSON."""


class JointBucketTransform(Transform[Any, int]):
    """`bucket[N]` of several columns: the hash of their bytes, one after the other, modulo N."""

    root: str = Field()
    _num_buckets: int = PrivateAttr()

    def __init__(self, num_buckets: int, **data: Any) -> None:
        super().__init__(f"bucket[{num_buckets}]", **data)
        self._num_buckets = num_buckets

    @property
    def num_buckets(self) -> int:
        """The number of buckets."""
        return self._num_buckets

    def can_transform(self, source: IcebergType) -> bool:
        """Whether a column of this type can be one of the sources."""
        return BucketTransform(self._num_buckets).can_transform(source)

    def result_type(self, source: IcebergType) -> IcebergType:
        """An int, whatever the sources are."""
        return IntegerType()

    def transform(self, source: IcebergType) -> Callable[[Any], int | None]:
        """Refused: one value does not tell the bucket."""
        raise InvalidInput(f"{self} is made from several columns; one of them has no bucket")

    def project(self, name: str, pred: BoundPredicate) -> UnboundPredicate | None:
        """Nothing: a condition on one column does not tell the bucket."""
        return None

    def strict_project(self, name: str, pred: BoundPredicate) -> UnboundPredicate | None:
        """Nothing: no bucket makes a condition on one column certain."""
        return None

    def pyarrow_transform(self, source: IcebergType) -> Callable[[Any], Any]:
        """Refused, as `transform` is."""
        raise InvalidInput(f"{self} is made from several columns; one of them has no bucket")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JointBucketTransform) and self.root == other.root

    def __hash__(self) -> int:
        return hash((JointBucketTransform, self.root))

    def __repr__(self) -> str:
        return f"JointBucketTransform(num_buckets={self._num_buckets})"

    def __getnewargs__(self) -> tuple[str]:
        return (self.root,)


class JointField(PartitionField):
    """A partition field made from several columns; `source_id` is the first of `source_ids`."""

    source_ids: tuple[int, ...] = Field(alias="source-ids")

    def __init__(
        self,
        source_ids: Sequence[int] | None = None,
        field_id: int | None = None,
        transform: Transform[Any, Any] | None = None,
        name: str | None = None,
        **data: Any,
    ) -> None:
        sources = tuple(data.pop("source-ids", None) or source_ids or ())
        data["source-ids"] = sources
        super().__init__(
            source_id=sources[0], field_id=field_id, transform=transform, name=name, **data
        )

    def __str__(self) -> str:
        sources = ", ".join(str(source) for source in self.source_ids)
        return f"{self.field_id}: {self.name}: {self.transform}({sources})"


def source_ids(part: PartitionField) -> tuple[int, ...]:
    """The columns that a partition field is made from."""
    return part.source_ids if isinstance(part, JointField) else (part.source_id,)


def partition_field(
    sources: Sequence[int], *, field_id: int, transform: Transform[Any, Any], name: str
) -> PartitionField:
    """A partition field of one column or of several."""
    if len(sources) == 1:
        return PartitionField(
            source_id=sources[0], field_id=field_id, transform=transform, name=name
        )
    return JointField(source_ids=sources, field_id=field_id, transform=transform, name=name)


def transform_of(text: str, count: int) -> Transform[Any, Any]:
    """The transform that a name means when it is applied to so many columns."""
    transform = parse_transform(text)
    if count == 1 or isinstance(transform, VoidTransform):
        return transform
    if isinstance(transform, BucketTransform):
        return JointBucketTransform(transform.num_buckets)
    return UnknownTransform(transform=text)


# JSON


def transform_text(transform: Transform[Any, Any]) -> str:
    """A transform as it is written. Of one that it does not know, PyIceberg's text is `unknown`."""
    if isinstance(transform, UnknownTransform):
        return str(transform._transform)
    return str(transform)


def load_spec(document: Mapping[str, Any]) -> PartitionSpec:
    """A partition spec from JSON; raises what PyIceberg's models raise."""
    fields = document.get("fields")
    if not isinstance(fields, list):
        return PartitionSpec.model_validate(document)
    return PartitionSpec.model_validate({**document, "fields": tuple(map(_load_field, fields))})


def _load_field(document: Any) -> PartitionField:
    sources = document.get("source-ids") if isinstance(document, Mapping) else None
    if not isinstance(sources, list) or len(sources) < 2:
        return PartitionField.model_validate(document)
    assert isinstance(document, Mapping)
    if len(sources) > MAX_SOURCES or not all(type(source) is int for source in sources):
        raise ValueError(f"source-ids must list at most {MAX_SOURCES} field ids: {sources!r}")
    if len(set(sources)) != len(sources):
        raise ValueError(f"source-ids names a column twice: {sources}")
    text = document.get("transform")
    if not isinstance(text, str):
        raise ValueError(f"transform is {text!r}; expected text")
    return JointField(
        source_ids=sources,
        field_id=document.get("field-id"),
        transform=transform_of(text, len(sources)),
        name=document.get("name"),
    )


def spec_document(spec: PartitionSpec) -> dict[str, Any]:
    """A partition spec as JSON."""
    return {"spec-id": spec.spec_id, "fields": field_documents(spec)}


def field_documents(spec: PartitionSpec) -> list[dict[str, Any]]:
    """The fields of a partition spec as JSON."""
    documents: list[dict[str, Any]] = []
    for part in spec.fields:
        if isinstance(part, JointField):
            documents.append(
                {
                    "source-ids": list(part.source_ids),
                    "field-id": part.field_id,
                    "transform": transform_text(part.transform),
                    "name": part.name,
                }
            )
        else:
            text = transform_text(part.transform)
            documents.append(part.model_dump(mode="json") | {"transform": text})
    return documents


# What clients of v1 to v3 are shown


def published_spec(spec: PartitionSpec) -> PartitionSpec:
    """The spec with `void` in place of every transform of several columns.

    Readers of v3 look for one `source-id` and would take `bucket[16](a, b)` for `bucket[16](a)`;
    every version knows `void`, whose value is always null and prunes nothing.
    """
    if not is_joint(spec):
        return spec
    fields = [_published(part) for part in spec.fields]
    return PartitionSpec(*fields, spec_id=spec.spec_id)


def _published(part: PartitionField) -> PartitionField:
    if not isinstance(part, JointField):
        return part
    return PartitionField(
        source_id=part.source_id,
        field_id=part.field_id,
        transform=VoidTransform(),
        name=part.name,
    )


def as_known(spec: PartitionSpec, known: Sequence[PartitionSpec]) -> PartitionSpec:
    """A client's spec with the fields of several columns that it was shown as `void`."""
    joint = {
        part.field_id: part for old in known for part in old.fields if isinstance(part, JointField)
    }
    fields = [
        joint[part.field_id]
        if part.field_id in joint and _published(joint[part.field_id]) == part
        else part
        for part in spec.fields
    ]
    return PartitionSpec(*fields, spec_id=spec.spec_id)


def is_joint(spec: PartitionSpec) -> bool:
    """Whether a field of the spec is made from several columns."""
    return any(isinstance(part, JointField) for part in spec.fields)


# Schemas


def fresh_spec(spec: PartitionSpec, old: Schema, fresh: Schema) -> PartitionSpec:
    """The spec with the ids of a schema that was numbered afresh; its own ids from 1000 on."""
    from pyiceberg.partitioning import PARTITION_FIELD_ID_START

    fields: list[PartitionField] = []
    for position, part in enumerate(spec.fields):
        sources: list[int] = []
        for source in source_ids(part):
            name = old.find_column_name(source)
            if name is None:
                raise ValueError(f"no column has field id {source}, a source of '{part.name}'")
            sources.append(fresh.find_field(name).field_id)
        fields.append(
            partition_field(
                sources,
                field_id=PARTITION_FIELD_ID_START + position,
                transform=part.transform,
                name=part.name,
            )
        )
    return PartitionSpec(*fields, spec_id=0)


def check_compatible(spec: PartitionSpec, schema: Schema) -> None:
    """Refuse, as PyIceberg does, a spec whose columns the schema has not or in types it cannot
    transform."""
    by_source = [
        PartitionField(
            source_id=source, field_id=part.field_id, transform=part.transform, name=part.name
        )
        for part in spec.fields
        for source in source_ids(part)
    ]
    PartitionSpec(*by_source, spec_id=spec.spec_id).check_compatible(schema)


__all__ = [
    "JointBucketTransform",
    "JointField",
    "as_known",
    "check_compatible",
    "field_documents",
    "fresh_spec",
    "is_joint",
    "load_spec",
    "partition_field",
    "published_spec",
    "source_ids",
    "spec_document",
    "transform_of",
]
