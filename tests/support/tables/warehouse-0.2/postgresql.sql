--
-- PostgreSQL database dump
--


-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: frazil_definitions; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.frazil_definitions (
    table_id bigint NOT NULL,
    definition text NOT NULL
);


--
-- Name: frazil_layout; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.frazil_layout (
    layout_version integer NOT NULL
);


--
-- Name: frazil_metadata_log; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.frazil_metadata_log (
    table_id bigint NOT NULL,
    version bigint NOT NULL,
    "position" integer NOT NULL,
    metadata_file text NOT NULL,
    timestamp_ms bigint NOT NULL
);


--
-- Name: frazil_notes; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.frazil_notes (
    table_id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL
);


--
-- Name: frazil_offers; Type: TABLE; Schema: public; Owner: -
--

CREATE UNLOGGED TABLE public.frazil_offers (
    offer_id bigint NOT NULL,
    table_id bigint NOT NULL,
    since timestamp without time zone NOT NULL,
    branch text NOT NULL,
    summary text NOT NULL,
    entries bytea NOT NULL
);


--
-- Name: frazil_snapshot_log; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.frazil_snapshot_log (
    table_id bigint NOT NULL,
    version bigint NOT NULL,
    "position" integer NOT NULL,
    snapshot_id bigint NOT NULL,
    timestamp_ms bigint NOT NULL
);


--
-- Name: frazil_snapshots; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.frazil_snapshots (
    table_id bigint NOT NULL,
    snapshot_id bigint NOT NULL,
    version bigint NOT NULL,
    "position" integer NOT NULL,
    record text NOT NULL
);


--
-- Name: frazil_tables; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.frazil_tables (
    table_id bigint NOT NULL,
    catalog_name character varying(255) NOT NULL,
    table_namespace character varying(255) NOT NULL,
    table_name character varying(255) NOT NULL,
    location text NOT NULL,
    version bigint NOT NULL,
    rendered_version bigint,
    definition_id character varying(64) NOT NULL,
    last_sequence_number bigint NOT NULL,
    last_updated_ms bigint NOT NULL,
    next_row_id bigint NOT NULL,
    current_snapshot_id bigint,
    refs text NOT NULL
);


--
-- Name: frazil_tables_table_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.frazil_tables_table_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: frazil_tables_table_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.frazil_tables_table_id_seq OWNED BY public.frazil_tables.table_id;


--
-- Name: frazil_views; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.frazil_views (
    catalog_name character varying(255) NOT NULL,
    view_namespace character varying(255) NOT NULL,
    view_name character varying(255) NOT NULL,
    version bigint NOT NULL,
    metadata text NOT NULL
);


--
-- Name: iceberg_namespace_properties; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.iceberg_namespace_properties (
    catalog_name character varying(255) NOT NULL,
    namespace character varying(255) NOT NULL,
    property_key character varying(255) NOT NULL,
    property_value character varying(1000) NOT NULL
);


--
-- Name: iceberg_tables; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.iceberg_tables (
    catalog_name character varying(255) NOT NULL,
    table_namespace character varying(255) NOT NULL,
    table_name character varying(255) NOT NULL,
    metadata_location character varying(1000),
    previous_metadata_location character varying(1000),
    iceberg_type character varying(5)
);


--
-- Name: frazil_tables table_id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.frazil_tables ALTER COLUMN table_id SET DEFAULT nextval('public.frazil_tables_table_id_seq'::regclass);


--
-- Data for Name: frazil_definitions; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.frazil_definitions VALUES (6, '{"format-version":4,"table-uuid":"f4605ba5-5694-4b9d-9b1c-6f3f676f5029","location":"file:///tmp/frazil-warehouse-0.2/postgresql/shop.eu/before","last-column-id":3,"current-schema-id":0,"schemas":[{"type":"struct","fields":[{"id":1,"name":"id","type":"long","required":true},{"id":2,"name":"country","type":"string","required":false},{"id":3,"name":"price","type":"double","required":false}],"schema-id":0,"identifier-field-ids":[]}],"default-spec-id":0,"partition-specs":[{"spec-id":0,"fields":[]}],"last-partition-id":999,"default-sort-order-id":0,"sort-orders":[{"order-id":0,"fields":[]}],"properties":{},"expressions":[],"statistics":[],"partition-statistics":[]}');
INSERT INTO public.frazil_definitions VALUES (1, '{"format-version":4,"table-uuid":"f340f4fe-f046-471e-bcb6-3adf872ba152","location":"file:///tmp/frazil-warehouse-0.2/postgresql/shop/orders","last-column-id":4,"current-schema-id":1,"schemas":[{"type":"struct","fields":[{"id":1,"name":"id","type":"long","required":true},{"id":2,"name":"country","type":"string","required":false},{"id":3,"name":"price","type":"double","required":false}],"schema-id":0,"identifier-field-ids":[]},{"type":"struct","fields":[{"id":1,"name":"id","type":"long","required":true},{"id":2,"name":"country","type":"string","required":false},{"id":3,"name":"price","type":"double","required":false},{"id":4,"name":"note","type":"string","required":false}],"schema-id":1,"identifier-field-ids":[]}],"default-spec-id":0,"partition-specs":[{"spec-id":0,"fields":[{"source-id":2,"field-id":1000,"transform":"identity","name":"country"}]}],"last-partition-id":1000,"default-sort-order-id":0,"sort-orders":[{"order-id":0,"fields":[]}],"properties":{"write.root.max-data-entries":"2","write.leaf.target-entries":"4","publish.format-version":"3"},"expressions":[],"statistics":[],"partition-statistics":[]}');
INSERT INTO public.frazil_definitions VALUES (2, '{"format-version":4,"table-uuid":"bca63a69-2df0-4b1c-a654-2f7d019bd102","location":"file:///tmp/frazil-warehouse-0.2/postgresql/shop/items","last-column-id":3,"current-schema-id":0,"schemas":[{"type":"struct","fields":[{"id":1,"name":"id","type":"long","required":true},{"id":2,"name":"country","type":"string","required":false},{"id":3,"name":"price","type":"double","required":false}],"schema-id":0,"identifier-field-ids":[]}],"default-spec-id":0,"partition-specs":[{"spec-id":0,"fields":[]}],"last-partition-id":999,"default-sort-order-id":0,"sort-orders":[{"order-id":0,"fields":[]}],"properties":{"write.root.max-data-entries":"2","write.leaf.target-entries":"4","publish.format-version":"2"},"expressions":[],"statistics":[],"partition-statistics":[]}');
INSERT INTO public.frazil_definitions VALUES (3, '{"format-version":4,"table-uuid":"0969ce2e-0f82-44a7-88a5-b9b9cb58ecd5","location":"file:///tmp/frazil-warehouse-0.2/postgresql/shop/revisions","last-column-id":3,"current-schema-id":0,"schemas":[{"type":"struct","fields":[{"id":1,"name":"id","type":"long","required":true},{"id":2,"name":"country","type":"string","required":false},{"id":3,"name":"price","type":"double","required":false}],"schema-id":0,"identifier-field-ids":[]}],"default-spec-id":0,"partition-specs":[{"spec-id":0,"fields":[]}],"last-partition-id":999,"default-sort-order-id":0,"sort-orders":[{"order-id":0,"fields":[]}],"properties":{"write.root.max-data-entries":"2","write.leaf.target-entries":"4"},"expressions":[],"statistics":[],"partition-statistics":[]}');
INSERT INTO public.frazil_definitions VALUES (4, '{"format-version":4,"table-uuid":"8ba85ead-c947-4c7b-8a92-0d1f71e50d2b","location":"file:///tmp/frazil-warehouse-0.2/postgresql/shop/equality","last-column-id":3,"current-schema-id":0,"schemas":[{"type":"struct","fields":[{"id":1,"name":"id","type":"long","required":true},{"id":2,"name":"country","type":"string","required":false},{"id":3,"name":"price","type":"double","required":false}],"schema-id":0,"identifier-field-ids":[]}],"default-spec-id":0,"partition-specs":[{"spec-id":0,"fields":[{"source-id":2,"field-id":1000,"transform":"identity","name":"country"}]},{"spec-id":1,"fields":[]}],"last-partition-id":1000,"default-sort-order-id":0,"sort-orders":[{"order-id":0,"fields":[]}],"properties":{"write.root.max-data-entries":"2","write.leaf.target-entries":"4","write.equality-deletes.enabled":"true"},"expressions":[],"statistics":[],"partition-statistics":[]}');
INSERT INTO public.frazil_definitions VALUES (5, '{"format-version":4,"table-uuid":"1fad4012-3731-4a71-9369-1a2d4c759435","location":"file:///tmp/frazil-warehouse-0.2/postgresql/shop/upgraded","last-column-id":3,"current-schema-id":0,"schemas":[{"type":"struct","fields":[{"id":1,"name":"id","type":"long","required":true},{"id":2,"name":"country","type":"string","required":false},{"id":3,"name":"price","type":"double","required":false}],"schema-id":0,"identifier-field-ids":[]}],"default-spec-id":0,"partition-specs":[{"spec-id":0,"fields":[]}],"last-partition-id":999,"default-sort-order-id":0,"sort-orders":[{"order-id":0,"fields":[]}],"properties":{},"expressions":[],"statistics":[],"partition-statistics":[]}');


--
-- Data for Name: frazil_layout; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.frazil_layout VALUES (5);


--
-- Data for Name: frazil_metadata_log; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.frazil_metadata_log VALUES (1, 0, 0, 'file:///tmp/frazil-warehouse-0.2/postgresql/shop/orders/metadata/00000-298f54cb-d9a8-46d8-886f-8e4e74f970da.metadata.json', 1794967877537);
INSERT INTO public.frazil_metadata_log VALUES (1, 7, 0, 'file:///tmp/frazil-warehouse-0.2/postgresql/shop/orders/metadata/00007-b8a4a3a9-d16d-4039-bfb7-cf199b58e153.metadata.json', 1794967878161);
INSERT INTO public.frazil_metadata_log VALUES (2, 0, 0, 'file:///tmp/frazil-warehouse-0.2/postgresql/shop/items/metadata/00000-a4bb9178-9308-4ec4-a232-e9cc12b15e82.metadata.json', 1794967878769);
INSERT INTO public.frazil_metadata_log VALUES (3, 0, 0, 'file:///tmp/frazil-warehouse-0.2/postgresql/shop/revisions/metadata/00000-4b40c2b3-1799-491a-b4a4-e5c9dd5b8e85.metadata.json', 1794967879417);
INSERT INTO public.frazil_metadata_log VALUES (4, 0, 0, 'file:///tmp/frazil-warehouse-0.2/postgresql/shop/equality/metadata/00000-30290955-a492-4608-8d06-6cd97659afe4.metadata.json', 1794967880219);
INSERT INTO public.frazil_metadata_log VALUES (4, 2, 0, 'file:///tmp/frazil-warehouse-0.2/postgresql/shop/equality/metadata/00002-0ff4db57-f771-40eb-946b-acfc10680a41.metadata.json', 1794967880351);
INSERT INTO public.frazil_metadata_log VALUES (5, 0, 0, 'file:///tmp/frazil-warehouse-0.2/postgresql/shop/upgraded/metadata/00000-947c3586-96a3-46cb-ac1b-2b21b144e67d.metadata.json', 1794967880642);
INSERT INTO public.frazil_metadata_log VALUES (5, 0, 1, 'file:///tmp/frazil-warehouse-0.2/postgresql/shop/upgraded/metadata/00001-14ec12e5-b114-4897-9b35-86284b0331c0.metadata.json', 1794967880719);
INSERT INTO public.frazil_metadata_log VALUES (5, 0, 2, 'file:///tmp/frazil-warehouse-0.2/postgresql/shop/upgraded/metadata/00002-07af124f-be48-477b-9904-3fb3d581e13f.metadata.json', 1794967880812);
INSERT INTO public.frazil_metadata_log VALUES (5, 0, 3, 'file:///tmp/frazil-warehouse-0.2/postgresql/shop/upgraded/metadata/00003-9bdad121-8131-406d-9b83-137e7d2dcf46.metadata.json', 1794967880973);
INSERT INTO public.frazil_metadata_log VALUES (5, 0, 4, 'file:///tmp/frazil-warehouse-0.2/postgresql/shop/upgraded/metadata/00000-0289e0f1-c2c6-4787-bacc-1e22d25c557f.metadata.json', 1794967881329);
INSERT INTO public.frazil_metadata_log VALUES (6, 0, 0, 'file:///tmp/frazil-warehouse-0.2/postgresql/shop.eu/before/metadata/00000-4d17febf-96f2-4d33-a6a3-2e20bd9a195d.metadata.json', 1794967881687);


--
-- Data for Name: frazil_notes; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.frazil_notes VALUES (1, 'of 0.2/kept', 'a note');


--
-- Data for Name: frazil_offers; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.frazil_offers VALUES (4711, 2, '2026-11-18 02:11:21.916809', 'main', '{}', '\xffffffffe00600001000000000000a000c000600050008000a000000000104000c00000008000800000004000800000004000000180000006c06000020060000ec050000bc0500008005000040050000d80400009004000040040000f8030000b00300006c03000024030000d4020000800200004002000000020000bc0100007401000024010000d80000008c000000480000000400000004faffff00000106100000003000000004000000000000001c000000636f6e74656e745f73746174732e332e74696768745f626f756e64730000000080faffff44faffff00000103100000002c00000004000000000000001b000000636f6e74656e745f73746174732e332e75707065725f626f756e6400beffffff0000020084faffff00000103100000003400000004000000000000001b000000636f6e74656e745f73746174732e332e6c6f7765725f626f756e640000000600080006000600000000000200ccfaffff00000102100000003000000004000000000000001f000000636f6e74656e745f73746174732e332e6e616e5f76616c75655f636f756e7400ccfaffff000000014000000014fbffff000001021000000034000000040000000000000020000000636f6e74656e745f73746174732e332e6e756c6c5f76616c75655f636f756e740000000018fbffff000000014000000060fbffff00000102100000002c00000004000000000000001b000000636f6e74656e745f73746174732e332e76616c75655f636f756e74005cfbffff0000000140000000a4fbffff00000106100000003000000004000000000000001c000000636f6e74656e745f73746174732e322e74696768745f626f756e64730000000020fcffffe4fbffff00000105100000002c00000004000000000000001b000000636f6e74656e745f73746174732e322e75707065725f626f756e64005cfcffff20fcffff00000105100000002c00000004000000000000001b000000636f6e74656e745f73746174732e322e6c6f7765725f626f756e640098fcffff5cfcffff000001021000000038000000040000000000000027000000636f6e74656e745f73746174732e322e6176675f76616c75655f73697a655f696e5f62797465730064fcffff0000000120000000acfcffff000001021000000034000000040000000000000020000000636f6e74656e745f73746174732e322e6e756c6c5f76616c75655f636f756e7400000000b0fcffff0000000140000000f8fcffff00000102100000002c00000004000000000000001b000000636f6e74656e745f73746174732e322e76616c75655f636f756e7400f4fcffff00000001400000003cfdffff00000106100000003000000004000000000000001c000000636f6e74656e745f73746174732e312e74696768745f626f756e647300000000b8fdffff7cfdffff00000102100000002c00000004000000000000001b000000636f6e74656e745f73746174732e312e75707065725f626f756e640078fdffff0000000140000000c0fdffff00000102100000002c00000004000000000000001b000000636f6e74656e745f73746174732e312e6c6f7765725f626f756e6400bcfdffff000000014000000004feffff000001021000000034000000040000000000000020000000636f6e74656e745f73746174732e312e6e756c6c5f76616c75655f636f756e740000000008feffff000000014000000050feffff00000102100000002c00000004000000000000001b000000636f6e74656e745f73746174732e312e76616c75655f636f756e74004cfeffff000000014000000094feffff0000010c140000002400000004000000010000001c0000000d00000073706c69745f6f66667365747300000004ffffffc8feffff0000010210000000180000000400000000000000040000006974656d00000000b0feffff0000000140000000f8feffff00000102100000002400000004000000000000001200000066696c655f73697a655f696e5f62797465730000ecfeffff000000014000000034ffffff00000102100000002000000004000000000000000c0000007265636f72645f636f756e740000000024ffffff00000001400000006cffffff00000105100000001c00000004000000000000000b00000066696c655f666f726d617400d4ffffff98ffffff0000010510000000200000000400000000000000080000006c6f636174696f6e000000000400040004000000c8ffffff00000102100000002000000004000000000000000c000000636f6e74656e745f7479706500000000b8ffffff0000000120000000100014000800060007000c00000010001000000000000102100000002800000004000000000000000f000000747261636b696e672e7374617475730008000c000800070008000000000000012000000000000000ffffffff4805000014000000000000000c0016000600050008000c000c0000000003040018000000180100000000000000000a0018000c00040008000a0000007c03000010000000010000000000000000000000360000000000000000000000000000000000000000000000000000000400000000000000080000000000000000000000000000000800000000000000040000000000000010000000000000000000000000000000100000000000000008000000000000001800000000000000330000000000000050000000000000000000000000000000500000000000000008000000000000005800000000000000070000000000000060000000000000000000000000000000600000000000000008000000000000006800000000000000000000000000000068000000000000000800000000000000700000000000000000000000000000007000000000000000080000000000000078000000000000000000000000000000780000000000000008000000000000008000000000000000000000000000000080000000000000000800000000000000880000000000000000000000000000008800000000000000080000000000000090000000000000000000000000000000900000000000000008000000000000009800000000000000000000000000000098000000000000000800000000000000a0000000000000000000000000000000a0000000000000000100000000000000a8000000000000000000000000000000a8000000000000000800000000000000b0000000000000000000000000000000b0000000000000000800000000000000b8000000000000000000000000000000b8000000000000000400000000000000c0000000000000000000000000000000c0000000000000000800000000000000c8000000000000000200000000000000d0000000000000000000000000000000d0000000000000000800000000000000d8000000000000000200000000000000e0000000000000000000000000000000e0000000000000000100000000000000e8000000000000000000000000000000e8000000000000000800000000000000f0000000000000000000000000000000f0000000000000000800000000000000f8000000000000000000000000000000f8000000000000000800000000000000000100000000000000000000000000000001000000000000080000000000000008010000000000000000000000000000080100000000000008000000000000001001000000000000000000000000000010010000000000000100000000000000000000001900000001000000000000000000000000000000010000000000000000000000000000000100000000000000000000000000000001000000000000000000000000000000010000000000000000000000000000000100000000000000000000000000000001000000000000000000000000000000010000000000000000000000000000000100000000000000000000000000000001000000000000000000000000000000010000000000000000000000000000000100000000000000000000000000000001000000000000000000000000000000010000000000000000000000000000000100000000000000000000000000000001000000000000000000000000000000010000000000000000000000000000000100000000000000000000000000000001000000000000000000000000000000010000000000000000000000000000000100000000000000000000000000000001000000000000000000000000000000010000000000000000000000000000000100000000000000000000000000000001000000000000000000000000000000010000000000000000000000000000000000000033000000646174612f61663863613463312d633031342d343136352d626339312d3735653234663064373962302d302e70617271756574000000000000000000070000007061727175657400010000000000000025030000000000000000000001000000040000000000000001000000000000000000000000000000e703000000000000e7030000000000000100000000000000010000000000000000000000000000000200000000000000000000000200000055530000000000000000000002000000555300000000000001000000000000000100000000000000000000000000000000000000000000000000000000388f400000000000388f400100000000000000ffffffff00000000');


--
-- Data for Name: frazil_snapshot_log; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.frazil_snapshot_log VALUES (1, 1, 0, 1475671387043418440, 1794967877615);
INSERT INTO public.frazil_snapshot_log VALUES (1, 3, 0, 4479822513054781657, 1794967877670);
INSERT INTO public.frazil_snapshot_log VALUES (1, 4, 0, 2308783958061449150, 1794967877758);
INSERT INTO public.frazil_snapshot_log VALUES (1, 5, 0, 2819837740196209326, 1794967877865);
INSERT INTO public.frazil_snapshot_log VALUES (1, 6, 0, 382035469502880485, 1794967878016);
INSERT INTO public.frazil_snapshot_log VALUES (1, 8, 0, 2245783153611207098, 1794967878199);
INSERT INTO public.frazil_snapshot_log VALUES (1, 12, 0, 679517423610041684, 1794967878544);
INSERT INTO public.frazil_snapshot_log VALUES (2, 1, 0, 3435124954752181677, 1794967878809);
INSERT INTO public.frazil_snapshot_log VALUES (2, 2, 0, 3191846475488468078, 1794967878907);
INSERT INTO public.frazil_snapshot_log VALUES (2, 3, 0, 985897811625315296, 1794967879010);
INSERT INTO public.frazil_snapshot_log VALUES (2, 4, 0, 4073494966839602474, 1794967879192);
INSERT INTO public.frazil_snapshot_log VALUES (3, 1, 0, 1536902116122148402, 1794967879460);
INSERT INTO public.frazil_snapshot_log VALUES (3, 2, 0, 1099886362417883157, 1794967879514);
INSERT INTO public.frazil_snapshot_log VALUES (3, 3, 0, 1200717534644191866, 1794967879552);
INSERT INTO public.frazil_snapshot_log VALUES (3, 4, 0, 4281255806576702946, 1794967879650);
INSERT INTO public.frazil_snapshot_log VALUES (3, 5, 0, 2295178081439225833, 1794967879700);
INSERT INTO public.frazil_snapshot_log VALUES (3, 7, 0, 3523097523074504188, 1794967879818);
INSERT INTO public.frazil_snapshot_log VALUES (3, 8, 0, 2595579497132323275, 1794967879874);
INSERT INTO public.frazil_snapshot_log VALUES (3, 9, 0, 3579582339312636039, 1794967880039);
INSERT INTO public.frazil_snapshot_log VALUES (3, 10, 0, 2366735484282845201, 1794967880129);
INSERT INTO public.frazil_snapshot_log VALUES (4, 1, 0, 4605664910399125122, 1794967880298);
INSERT INTO public.frazil_snapshot_log VALUES (4, 2, 0, 1218132280416735768, 1794967880351);
INSERT INTO public.frazil_snapshot_log VALUES (4, 3, 0, 4477518117385090517, 1794967880462);
INSERT INTO public.frazil_snapshot_log VALUES (4, 4, 0, 194702347390975518, 1794967880550);
INSERT INTO public.frazil_snapshot_log VALUES (5, 0, 0, 430550039331375125, 1794967880719);
INSERT INTO public.frazil_snapshot_log VALUES (5, 0, 1, 2054355803716539550, 1794967880812);
INSERT INTO public.frazil_snapshot_log VALUES (5, 0, 2, 6889674592586703278, 1794967880973);
INSERT INTO public.frazil_snapshot_log VALUES (5, 1, 0, 1823959653176505102, 1794967881372);
INSERT INTO public.frazil_snapshot_log VALUES (5, 2, 0, 1138823449256765695, 1794967881461);
INSERT INTO public.frazil_snapshot_log VALUES (6, 1, 0, 575908959915344173, 1794967881734);


--
-- Data for Name: frazil_snapshots; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.frazil_snapshots VALUES (1, 1475671387043418440, 1, 0, '{"snapshot-id":1475671387043418440,"sequence-number":1,"timestamp-ms":1794967877615,"schema-id":0,"root-manifest":"metadata/root-0000000001-a1efdbab-6682-442c-b666-df9fefe283b5.parquet","first-row-id":0,"added-rows":4,"summary":{"operation":"append","added-data-files":"2","added-records":"4","added-files-size":"1644","changed-partition-count":"2","total-data-files":"2","total-delete-files":"0","total-records":"4","total-files-size":"1644","total-position-deletes":"0","total-equality-deletes":"0","frazil.root-entries":"2","frazil.leaves-written":"0","frazil.metadata-bytes-written":"5043"}}');
INSERT INTO public.frazil_snapshots VALUES (1, 4479822513054781657, 3, 0, '{"snapshot-id":4479822513054781657,"parent-snapshot-id":1475671387043418440,"sequence-number":2,"timestamp-ms":1794967877670,"schema-id":0,"root-manifest":"metadata/root-0000000002-33abfbce-6aca-4f78-87c5-cd8313a0d804.parquet","first-row-id":4,"added-rows":2,"summary":{"operation":"append","added-data-files":"2","added-records":"2","added-files-size":"1610","changed-partition-count":"2","total-data-files":"4","total-delete-files":"0","total-records":"6","total-files-size":"3254","total-position-deletes":"0","total-equality-deletes":"0","frazil.root-entries":"3","frazil.leaves-written":"1","frazil.entries-flushed":"2","frazil.metadata-bytes-written":"11552"}}');
INSERT INTO public.frazil_snapshots VALUES (1, 2308783958061449150, 4, 0, '{"snapshot-id":2308783958061449150,"parent-snapshot-id":4479822513054781657,"sequence-number":3,"timestamp-ms":1794967877758,"schema-id":0,"root-manifest":"metadata/root-0000000003-0be6915f-5496-4826-a54d-c9361285e6e9.parquet","first-row-id":6,"added-rows":2,"summary":{"operation":"append","added-data-files":"2","added-records":"2","added-files-size":"1610","changed-partition-count":"2","total-data-files":"6","total-delete-files":"0","total-records":"8","total-files-size":"4864","total-position-deletes":"0","total-equality-deletes":"0","frazil.root-entries":"4","frazil.leaves-written":"1","frazil.entries-flushed":"2","frazil.metadata-bytes-written":"11757"}}');
INSERT INTO public.frazil_snapshots VALUES (1, 2819837740196209326, 5, 0, '{"snapshot-id":2819837740196209326,"parent-snapshot-id":2308783958061449150,"sequence-number":4,"timestamp-ms":1794967877865,"schema-id":0,"root-manifest":"metadata/root-0000000004-bac6f73c-88ff-4dc4-8fab-cb556e64ba6f.parquet","first-row-id":8,"added-rows":0,"summary":{"operation":"delete","deleted-data-files":"1","deleted-records":"1","removed-files-size":"805","added-dvs":"1","added-position-deletes":"1","changed-partition-count":"2","added-delete-files":"1","total-data-files":"5","total-delete-files":"1","total-records":"7","total-files-size":"4059","total-position-deletes":"1","total-equality-deletes":"0","frazil.root-entries":"5","frazil.leaves-written":"0","frazil.metadata-bytes-written":"8294"}}');
INSERT INTO public.frazil_snapshots VALUES (1, 382035469502880485, 6, 0, '{"snapshot-id":382035469502880485,"parent-snapshot-id":2819837740196209326,"sequence-number":5,"timestamp-ms":1794967878016,"schema-id":0,"root-manifest":"metadata/root-0000000005-2687ea19-0b80-402a-85fd-afac1e7b981b.parquet","first-row-id":8,"added-rows":1,"summary":{"operation":"overwrite","added-data-files":"1","deleted-data-files":"1","added-records":"1","deleted-records":"1","added-files-size":"1309","removed-files-size":"805","changed-partition-count":"1","total-data-files":"5","total-delete-files":"1","total-records":"7","total-files-size":"4563","total-position-deletes":"1","total-equality-deletes":"0","frazil.root-entries":"4","frazil.leaves-written":"2","frazil.entries-flushed":"2","frazil.leaves-merged":"1","frazil.metadata-bytes-written":"18690"}}');
INSERT INTO public.frazil_snapshots VALUES (1, 2245783153611207098, 8, 0, '{"snapshot-id":2245783153611207098,"parent-snapshot-id":382035469502880485,"sequence-number":6,"timestamp-ms":1794967878199,"schema-id":1,"root-manifest":"metadata/root-0000000006-a31c9fc7-ec59-4007-a237-aa4922989899.parquet","first-row-id":9,"added-rows":1,"summary":{"operation":"append","added-data-files":"1","added-records":"1","added-files-size":"1028","changed-partition-count":"1","total-data-files":"6","total-delete-files":"1","total-records":"8","total-files-size":"5591","total-position-deletes":"1","total-equality-deletes":"0","frazil.root-entries":"5","frazil.leaves-written":"0","frazil.metadata-bytes-written":"9597"}}');
INSERT INTO public.frazil_snapshots VALUES (1, 575850422392602139, 10, 0, '{"snapshot-id":575850422392602139,"parent-snapshot-id":2245783153611207098,"sequence-number":7,"timestamp-ms":1794967878252,"schema-id":1,"root-manifest":"metadata/root-0000000007-8c537a57-bf5e-48d0-997d-07f3c20f1c8b.parquet","first-row-id":10,"added-rows":1,"summary":{"operation":"append","added-data-files":"1","added-records":"1","added-files-size":"1002","changed-partition-count":"1","total-data-files":"7","total-delete-files":"1","total-records":"9","total-files-size":"6593","total-position-deletes":"1","total-equality-deletes":"0","frazil.root-entries":"5","frazil.leaves-written":"1","frazil.entries-flushed":"2","frazil.metadata-bytes-written":"14804"}}');
INSERT INTO public.frazil_snapshots VALUES (1, 679517423610041684, 12, 0, '{"snapshot-id":679517423610041684,"parent-snapshot-id":2245783153611207098,"sequence-number":8,"timestamp-ms":1794967878544,"schema-id":1,"root-manifest":"metadata/root-0000000008-80650017-0086-4a71-b723-be0975871c3b.parquet","first-row-id":11,"added-rows":1,"summary":{"operation":"append","added-data-files":"1","added-records":"1","added-files-size":"1002","changed-partition-count":"1","total-data-files":"7","total-delete-files":"1","total-records":"9","total-files-size":"6593","total-position-deletes":"1","total-equality-deletes":"0","frazil.root-entries":"5","frazil.leaves-written":"1","frazil.entries-flushed":"2","frazil.metadata-bytes-written":"14774"}}');
INSERT INTO public.frazil_snapshots VALUES (2, 3435124954752181677, 1, 0, '{"snapshot-id":3435124954752181677,"sequence-number":1,"timestamp-ms":1794967878809,"schema-id":0,"root-manifest":"metadata/root-0000000001-d9d8180c-f245-4a4b-87aa-82087b6b4fb0.parquet","first-row-id":0,"added-rows":3,"summary":{"operation":"append","added-data-files":"1","added-records":"3","added-files-size":"844","changed-partition-count":"1","total-data-files":"1","total-delete-files":"0","total-records":"3","total-files-size":"844","total-position-deletes":"0","total-equality-deletes":"0","frazil.root-entries":"1","frazil.leaves-written":"0","frazil.metadata-bytes-written":"4597"}}');
INSERT INTO public.frazil_snapshots VALUES (2, 3191846475488468078, 2, 0, '{"snapshot-id":3191846475488468078,"parent-snapshot-id":3435124954752181677,"sequence-number":2,"timestamp-ms":1794967878907,"schema-id":0,"root-manifest":"metadata/root-0000000002-f2a5aebd-c3ac-4901-a567-3d8d3ea900c9.parquet","first-row-id":3,"added-rows":3,"summary":{"operation":"append","added-data-files":"1","added-records":"3","added-files-size":"844","changed-partition-count":"1","total-data-files":"2","total-delete-files":"0","total-records":"6","total-files-size":"1688","total-position-deletes":"0","total-equality-deletes":"0","frazil.root-entries":"2","frazil.leaves-written":"0","frazil.metadata-bytes-written":"4850"}}');
INSERT INTO public.frazil_snapshots VALUES (2, 985897811625315296, 3, 0, '{"snapshot-id":985897811625315296,"parent-snapshot-id":3191846475488468078,"sequence-number":3,"timestamp-ms":1794967879010,"schema-id":0,"root-manifest":"metadata/root-0000000003-de7e86a5-0bcd-433e-a4a1-1b7ac3a57ad2.parquet","first-row-id":6,"added-rows":1,"summary":{"operation":"append","added-data-files":"1","added-records":"1","added-files-size":"805","changed-partition-count":"1","total-data-files":"3","total-delete-files":"0","total-records":"7","total-files-size":"2493","total-position-deletes":"0","total-equality-deletes":"0","frazil.root-entries":"2","frazil.leaves-written":"1","frazil.entries-flushed":"2","frazil.metadata-bytes-written":"10869"}}');
INSERT INTO public.frazil_snapshots VALUES (2, 4073494966839602474, 4, 0, '{"snapshot-id":4073494966839602474,"parent-snapshot-id":985897811625315296,"sequence-number":4,"timestamp-ms":1794967879192,"schema-id":0,"root-manifest":"metadata/root-0000000004-54f995e5-3183-4724-867c-ab4bbc69eef2.parquet","first-row-id":7,"added-rows":0,"summary":{"operation":"delete","added-dvs":"1","added-position-deletes":"1","changed-partition-count":"1","added-delete-files":"1","total-data-files":"3","total-delete-files":"1","total-records":"7","total-files-size":"2493","total-position-deletes":"1","total-equality-deletes":"0","frazil.root-entries":"3","frazil.leaves-written":"0","frazil.metadata-bytes-written":"7748"}}');
INSERT INTO public.frazil_snapshots VALUES (3, 1536902116122148402, 1, 0, '{"snapshot-id":1536902116122148402,"sequence-number":1,"timestamp-ms":1794967879460,"schema-id":0,"root-manifest":"metadata/root-0000000001-d12de9bb-bdc5-4e16-a9c2-907eb629b6a9.parquet","first-row-id":0,"added-rows":2,"summary":{"operation":"append","added-data-files":"1","added-records":"2","added-files-size":"829","changed-partition-count":"1","total-data-files":"1","total-delete-files":"0","total-records":"2","total-files-size":"829","total-position-deletes":"0","total-equality-deletes":"0","frazil.root-entries":"1","frazil.leaves-written":"0","frazil.metadata-bytes-written":"4697"}}');
INSERT INTO public.frazil_snapshots VALUES (3, 1099886362417883157, 2, 0, '{"snapshot-id":1099886362417883157,"parent-snapshot-id":1536902116122148402,"sequence-number":2,"timestamp-ms":1794967879514,"schema-id":0,"root-manifest":"metadata/root-0000000002-1b2ceb33-2cdc-470f-b2a7-99a14ace3f91.parquet","first-row-id":2,"added-rows":2,"summary":{"operation":"append","added-data-files":"1","added-records":"2","added-files-size":"829","changed-partition-count":"1","total-data-files":"2","total-delete-files":"0","total-records":"4","total-files-size":"1658","total-position-deletes":"0","total-equality-deletes":"0","frazil.root-entries":"2","frazil.leaves-written":"0","frazil.metadata-bytes-written":"4954"}}');
INSERT INTO public.frazil_snapshots VALUES (3, 1200717534644191866, 3, 0, '{"snapshot-id":1200717534644191866,"parent-snapshot-id":1099886362417883157,"sequence-number":3,"timestamp-ms":1794967879552,"schema-id":0,"root-manifest":"metadata/root-0000000003-52548327-e786-4dc4-b72e-9bffba0eff4f.parquet","first-row-id":4,"added-rows":2,"summary":{"operation":"append","added-data-files":"1","added-records":"2","added-files-size":"829","changed-partition-count":"1","total-data-files":"3","total-delete-files":"0","total-records":"6","total-files-size":"2487","total-position-deletes":"0","total-equality-deletes":"0","frazil.root-entries":"2","frazil.leaves-written":"1","frazil.entries-flushed":"2","frazil.metadata-bytes-written":"10683"}}');
INSERT INTO public.frazil_snapshots VALUES (3, 4281255806576702946, 4, 0, '{"snapshot-id":4281255806576702946,"parent-snapshot-id":1200717534644191866,"sequence-number":4,"timestamp-ms":1794967879650,"schema-id":0,"root-manifest":"metadata/root-0000000004-3bb981f8-fd5c-4cf3-a4cc-87cc33958781.parquet","first-row-id":6,"added-rows":2,"summary":{"operation":"append","added-data-files":"1","added-records":"2","added-files-size":"829","changed-partition-count":"1","total-data-files":"4","total-delete-files":"0","total-records":"8","total-files-size":"3316","total-position-deletes":"0","total-equality-deletes":"0","frazil.root-entries":"3","frazil.leaves-written":"0","frazil.metadata-bytes-written":"6429"}}');
INSERT INTO public.frazil_snapshots VALUES (3, 2295178081439225833, 5, 0, '{"snapshot-id":2295178081439225833,"parent-snapshot-id":4281255806576702946,"sequence-number":5,"timestamp-ms":1794967879700,"schema-id":0,"root-manifest":"metadata/root-0000000005-ef54c986-a97c-4b3a-9aaa-448492d05604.parquet","first-row-id":8,"added-rows":0,"summary":{"operation":"delete","added-dvs":"1","added-position-deletes":"1","changed-partition-count":"1","added-delete-files":"1","total-data-files":"4","total-delete-files":"1","total-records":"8","total-files-size":"3316","total-position-deletes":"1","total-equality-deletes":"0","frazil.root-entries":"3","frazil.leaves-written":"1","frazil.entries-flushed":"2","frazil.metadata-bytes-written":"11954"}}');
INSERT INTO public.frazil_snapshots VALUES (3, 3523097523074504188, 7, 0, '{"snapshot-id":3523097523074504188,"parent-snapshot-id":2295178081439225833,"sequence-number":6,"timestamp-ms":1794967879818,"schema-id":0,"root-manifest":"metadata/root-0000000006-e53aff39-8c18-462d-8e83-81df32405207.parquet","first-row-id":8,"added-rows":2,"summary":{"operation":"append","added-data-files":"1","added-records":"2","added-files-size":"828","changed-partition-count":"1","total-data-files":"5","total-delete-files":"1","total-records":"10","total-files-size":"4144","total-position-deletes":"1","total-equality-deletes":"0","frazil.root-entries":"4","frazil.leaves-written":"0","frazil.metadata-bytes-written":"7742"}}');
INSERT INTO public.frazil_snapshots VALUES (3, 2595579497132323275, 8, 0, '{"snapshot-id":2595579497132323275,"parent-snapshot-id":3523097523074504188,"sequence-number":7,"timestamp-ms":1794967879874,"schema-id":0,"root-manifest":"metadata/root-0000000007-1bde3b9e-f255-44c3-973b-21f4fc492c38.parquet","first-row-id":10,"added-rows":2,"summary":{"operation":"append","added-data-files":"1","added-records":"2","added-files-size":"828","changed-partition-count":"1","total-data-files":"6","total-delete-files":"1","total-records":"12","total-files-size":"4972","total-position-deletes":"1","total-equality-deletes":"0","frazil.root-entries":"4","frazil.leaves-written":"2","frazil.entries-flushed":"2","frazil.leaves-merged":"1","frazil.metadata-bytes-written":"16180"}}');
INSERT INTO public.frazil_snapshots VALUES (3, 3579582339312636039, 9, 0, '{"snapshot-id":3579582339312636039,"parent-snapshot-id":2595579497132323275,"sequence-number":8,"timestamp-ms":1794967880039,"schema-id":0,"root-manifest":"metadata/root-0000000008-c6c56656-f293-4324-8613-db90b7344269.parquet","first-row-id":12,"added-rows":2,"summary":{"operation":"append","added-data-files":"1","added-records":"2","added-files-size":"829","changed-partition-count":"1","total-data-files":"7","total-delete-files":"1","total-records":"14","total-files-size":"5801","total-position-deletes":"1","total-equality-deletes":"0","frazil.root-entries":"5","frazil.leaves-written":"0","frazil.metadata-bytes-written":"6983"}}');
INSERT INTO public.frazil_snapshots VALUES (3, 2366735484282845201, 10, 0, '{"snapshot-id":2366735484282845201,"parent-snapshot-id":3579582339312636039,"sequence-number":9,"timestamp-ms":1794967880129,"schema-id":0,"root-manifest":"metadata/root-0000000009-65074178-621f-431e-9ef3-78faca9cf02d.parquet","first-row-id":14,"added-rows":0,"summary":{"operation":"delete","added-dvs":"2","added-position-deletes":"2","changed-partition-count":"1","added-delete-files":"2","total-data-files":"7","total-delete-files":"3","total-records":"14","total-files-size":"5801","total-position-deletes":"3","total-equality-deletes":"0","frazil.root-entries":"7","frazil.leaves-written":"0","frazil.metadata-bytes-written":"8125"}}');
INSERT INTO public.frazil_snapshots VALUES (4, 4605664910399125122, 1, 0, '{"snapshot-id":4605664910399125122,"sequence-number":1,"timestamp-ms":1794967880298,"schema-id":0,"root-manifest":"metadata/root-0000000001-299fb30b-a16e-46e1-9d65-4ed58999ebe1.parquet","first-row-id":0,"added-rows":4,"summary":{"operation":"append","added-data-files":"2","added-records":"4","added-files-size":"1644","changed-partition-count":"2","total-data-files":"2","total-delete-files":"0","total-records":"4","total-files-size":"1644","total-position-deletes":"0","total-equality-deletes":"0","frazil.root-entries":"2","frazil.leaves-written":"0","frazil.metadata-bytes-written":"5043"}}');
INSERT INTO public.frazil_snapshots VALUES (4, 1218132280416735768, 2, 0, '{"snapshot-id":1218132280416735768,"parent-snapshot-id":4605664910399125122,"sequence-number":2,"timestamp-ms":1794967880351,"schema-id":0,"root-manifest":"metadata/root-0000000002-3ebf080f-457b-4ebf-b208-f43c8cbe734f.parquet","first-row-id":4,"added-rows":0,"summary":{"operation":"delete","added-files-size":"331","added-equality-delete-files":"1","added-equality-deletes":"2","changed-partition-count":"1","added-delete-files":"1","total-data-files":"2","total-delete-files":"1","total-records":"4","total-files-size":"1975","total-position-deletes":"0","total-equality-deletes":"2","frazil.root-entries":"2","frazil.leaves-written":"1","frazil.entries-flushed":"2","frazil.metadata-bytes-written":"11296"}}');
INSERT INTO public.frazil_snapshots VALUES (4, 4477518117385090517, 3, 0, '{"snapshot-id":4477518117385090517,"parent-snapshot-id":1218132280416735768,"sequence-number":3,"timestamp-ms":1794967880462,"schema-id":0,"root-manifest":"metadata/root-0000000003-4cc2d84c-9589-4674-b6dc-24da850ad6aa.parquet","first-row-id":4,"added-rows":1,"summary":{"operation":"append","added-data-files":"1","added-records":"1","added-files-size":"804","changed-partition-count":"1","total-data-files":"3","total-delete-files":"1","total-records":"5","total-files-size":"2779","total-position-deletes":"0","total-equality-deletes":"2","frazil.root-entries":"3","frazil.leaves-written":"0","frazil.metadata-bytes-written":"7114"}}');
INSERT INTO public.frazil_snapshots VALUES (4, 194702347390975518, 4, 0, '{"snapshot-id":194702347390975518,"parent-snapshot-id":4477518117385090517,"sequence-number":4,"timestamp-ms":1794967880550,"schema-id":0,"root-manifest":"metadata/root-0000000004-6d386acc-84db-413f-b65b-b647c0a27f71.parquet","first-row-id":5,"added-rows":0,"summary":{"operation":"delete","added-dvs":"1","added-position-deletes":"1","changed-partition-count":"1","added-delete-files":"1","total-data-files":"3","total-delete-files":"2","total-records":"5","total-files-size":"2779","total-position-deletes":"1","total-equality-deletes":"2","frazil.root-entries":"4","frazil.leaves-written":"0","frazil.metadata-bytes-written":"8252"}}');
INSERT INTO public.frazil_snapshots VALUES (5, 430550039331375125, 0, 0, '{"snapshot-id":430550039331375125,"sequence-number":1,"timestamp-ms":1794967880719,"schema-id":0,"manifest-list":"file:///tmp/frazil-warehouse-0.2/postgresql/shop/upgraded/metadata/snap-430550039331375125-0-4b9ec169-d905-46f2-ad74-6e0ee4f83b16.avro","summary":{"operation":"append","added-files-size":"1336","added-data-files":"1","added-records":"3","total-data-files":"1","total-delete-files":"0","total-records":"3","total-files-size":"1336","total-position-deletes":"0","total-equality-deletes":"0"}}');
INSERT INTO public.frazil_snapshots VALUES (5, 2054355803716539550, 0, 1, '{"snapshot-id":2054355803716539550,"parent-snapshot-id":430550039331375125,"sequence-number":2,"timestamp-ms":1794967880812,"schema-id":0,"manifest-list":"file:///tmp/frazil-warehouse-0.2/postgresql/shop/upgraded/metadata/snap-2054355803716539550-0-d26bfde3-42f6-432e-bf70-e9cc5a08459b.avro","summary":{"operation":"append","added-files-size":"1322","added-data-files":"1","added-records":"2","total-data-files":"2","total-delete-files":"0","total-records":"5","total-files-size":"2658","total-position-deletes":"0","total-equality-deletes":"0"}}');
INSERT INTO public.frazil_snapshots VALUES (5, 6889674592586703278, 0, 2, '{"snapshot-id":6889674592586703278,"parent-snapshot-id":2054355803716539550,"sequence-number":3,"timestamp-ms":1794967880973,"schema-id":0,"manifest-list":"file:///tmp/frazil-warehouse-0.2/postgresql/shop/upgraded/metadata/snap-6889674592586703278-0-ff56f73d-91ad-4c42-8b32-4d1d7c252e96.avro","summary":{"operation":"overwrite","added-files-size":"1299","removed-files-size":"1322","added-data-files":"1","deleted-data-files":"1","added-records":"1","deleted-records":"2","total-data-files":"2","total-delete-files":"0","total-records":"4","total-files-size":"2635","total-position-deletes":"0","total-equality-deletes":"0"}}');
INSERT INTO public.frazil_snapshots VALUES (5, 1823959653176505102, 1, 0, '{"snapshot-id":1823959653176505102,"parent-snapshot-id":6889674592586703278,"sequence-number":4,"timestamp-ms":1794967881372,"schema-id":0,"root-manifest":"metadata/root-0000000004-e8e16001-28e3-4853-8ded-21a18225bd25.parquet","first-row-id":0,"added-rows":6,"summary":{"operation":"append","added-data-files":"1","added-records":"2","added-files-size":"829","changed-partition-count":"1","total-data-files":"3","total-delete-files":"0","total-records":"6","total-files-size":"3464","total-position-deletes":"0","total-equality-deletes":"0","frazil.root-entries":"3","frazil.leaves-written":"0","frazil.metadata-bytes-written":"6672"}}');
INSERT INTO public.frazil_snapshots VALUES (5, 1138823449256765695, 2, 0, '{"snapshot-id":1138823449256765695,"parent-snapshot-id":1823959653176505102,"sequence-number":5,"timestamp-ms":1794967881461,"schema-id":0,"root-manifest":"metadata/root-0000000005-98b40181-bd05-4d00-b27f-df707329cb11.parquet","first-row-id":6,"added-rows":0,"summary":{"operation":"delete","added-dvs":"1","added-position-deletes":"1","changed-partition-count":"1","added-delete-files":"1","total-data-files":"3","total-delete-files":"1","total-records":"6","total-files-size":"3464","total-position-deletes":"1","total-equality-deletes":"0","frazil.root-entries":"4","frazil.leaves-written":"0","frazil.metadata-bytes-written":"7786"}}');
INSERT INTO public.frazil_snapshots VALUES (6, 575908959915344173, 1, 0, '{"snapshot-id":575908959915344173,"sequence-number":1,"timestamp-ms":1794967881734,"schema-id":0,"root-manifest":"metadata/root-0000000001-57f9dcd8-d4e8-4c96-9696-9c90713f7f73.parquet","first-row-id":0,"added-rows":1,"summary":{"operation":"append","added-data-files":"1","added-records":"1","added-files-size":"805","changed-partition-count":"1","total-data-files":"1","total-delete-files":"0","total-records":"1","total-files-size":"805","total-position-deletes":"0","total-equality-deletes":"0","frazil.root-entries":"1","frazil.leaves-written":"0","frazil.metadata-bytes-written":"4595"}}');


--
-- Data for Name: frazil_tables; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.frazil_tables VALUES (3, 'default', 'shop', 'revisions', '/tmp/frazil-warehouse-0.2/postgresql/shop/revisions', 10, 0, 'e62685bbce885ce4741eb94322b0bd12', 9, 1794967880129, 14, 2366735484282845201, '{"main":{"snapshot-id":2366735484282845201,"type":"branch"}}');
INSERT INTO public.frazil_tables VALUES (1, 'default', 'shop', 'orders', '/tmp/frazil-warehouse-0.2/postgresql/shop/orders', 12, 7, '4d1db5fb5a1d7d755f7795eb9e12191c', 8, 1794967878544, 12, 679517423610041684, '{"main":{"snapshot-id":679517423610041684,"type":"branch"},"first":{"snapshot-id":1475671387043418440,"type":"tag"},"audit":{"snapshot-id":575850422392602139,"type":"branch"}}');
INSERT INTO public.frazil_tables VALUES (4, 'default', 'shop', 'equality', '/tmp/frazil-warehouse-0.2/postgresql/shop/equality', 4, 2, 'cc1aad35d49a3b1b098b3401f7dbee31', 4, 1794967880550, 5, 194702347390975518, '{"main":{"snapshot-id":194702347390975518,"type":"branch"}}');
INSERT INTO public.frazil_tables VALUES (2, 'default', 'shop', 'items', '/tmp/frazil-warehouse-0.2/postgresql/shop/items', 4, 0, 'b3a5ba1a5e9ba96646d9eb0dd8907797', 4, 1794967879192, 7, 4073494966839602474, '{"main":{"snapshot-id":4073494966839602474,"type":"branch"}}');
INSERT INTO public.frazil_tables VALUES (5, 'default', 'shop', 'upgraded', '/tmp/frazil-warehouse-0.2/postgresql/shop/upgraded', 2, 0, '39faa6ad3ec8a57d297158f89e44fbeb', 5, 1794967881461, 6, 1138823449256765695, '{"main":{"snapshot-id":1138823449256765695,"type":"branch"}}');
INSERT INTO public.frazil_tables VALUES (6, 'default', 'shop.eu', 'after', '/tmp/frazil-warehouse-0.2/postgresql/shop.eu/before', 1, 0, 'd6917ee907eb98bcae2613b15c70c347', 1, 1794967881734, 1, 575908959915344173, '{"main":{"snapshot-id":575908959915344173,"type":"branch"}}');


--
-- Data for Name: frazil_views; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.frazil_views VALUES ('default', 'shop', 'cheap', 0, '{"view-uuid": "e6a9defe-2612-43f6-90fc-88d6ee92081a", "format-version": 1, "location": "file:///tmp/frazil-warehouse-0.2/postgresql/shop/cheap", "current-version-id": 1, "versions": [{"version-id": 1, "schema-id": 0, "timestamp-ms": 1794967881679, "summary": {"engine-name": "frazil", "operation": "create"}, "default-namespace": ["shop"], "representations": [{"type": "sql", "sql": "SELECT id, price FROM shop.orders WHERE price < 3", "dialect": "duckdb"}]}], "version-log": [{"timestamp-ms": 1794967881679, "version-id": 1}], "schemas": [{"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": false}, {"id": 2, "name": "price", "type": "double", "required": false}], "schema-id": 0, "identifier-field-ids": []}], "properties": {}}');


--
-- Data for Name: iceberg_namespace_properties; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.iceberg_namespace_properties VALUES ('default', 'shop', 'owner', 'frazil 0.2');
INSERT INTO public.iceberg_namespace_properties VALUES ('default', 'shop.eu', 'exists', 'true');


--
-- Data for Name: iceberg_tables; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.iceberg_tables VALUES ('default', 'shop', 'orders', 'file:///tmp/frazil-warehouse-0.2/postgresql/shop/orders/metadata/00007-b8a4a3a9-d16d-4039-bfb7-cf199b58e153.metadata.json', 'file:///tmp/frazil-warehouse-0.2/postgresql/shop/orders/metadata/00000-298f54cb-d9a8-46d8-886f-8e4e74f970da.metadata.json', 'V4');
INSERT INTO public.iceberg_tables VALUES ('default', 'shop', 'items', 'file:///tmp/frazil-warehouse-0.2/postgresql/shop/items/metadata/00000-a4bb9178-9308-4ec4-a232-e9cc12b15e82.metadata.json', NULL, 'V4');
INSERT INTO public.iceberg_tables VALUES ('default', 'shop', 'revisions', 'file:///tmp/frazil-warehouse-0.2/postgresql/shop/revisions/metadata/00000-4b40c2b3-1799-491a-b4a4-e5c9dd5b8e85.metadata.json', NULL, 'V4');
INSERT INTO public.iceberg_tables VALUES ('default', 'shop', 'equality', 'file:///tmp/frazil-warehouse-0.2/postgresql/shop/equality/metadata/00002-0ff4db57-f771-40eb-946b-acfc10680a41.metadata.json', 'file:///tmp/frazil-warehouse-0.2/postgresql/shop/equality/metadata/00000-30290955-a492-4608-8d06-6cd97659afe4.metadata.json', 'V4');
INSERT INTO public.iceberg_tables VALUES ('default', 'shop', 'legacy', 'file:///tmp/frazil-warehouse-0.2/postgresql/shop/legacy/metadata/00003-34c48011-cc97-4cca-bb05-16d4880dcef7.metadata.json', 'file:///tmp/frazil-warehouse-0.2/postgresql/shop/legacy/metadata/00002-4b5796be-d99c-4141-8431-2d0d4c735742.metadata.json', 'TABLE');
INSERT INTO public.iceberg_tables VALUES ('default', 'shop', 'upgraded', 'file:///tmp/frazil-warehouse-0.2/postgresql/shop/upgraded/metadata/00000-0289e0f1-c2c6-4787-bacc-1e22d25c557f.metadata.json', 'file:///tmp/frazil-warehouse-0.2/postgresql/shop/upgraded/metadata/00003-9bdad121-8131-406d-9b83-137e7d2dcf46.metadata.json', 'V4');
INSERT INTO public.iceberg_tables VALUES ('default', 'shop', 'cheap', NULL, NULL, 'VIEW4');
INSERT INTO public.iceberg_tables VALUES ('default', 'shop.eu', 'after', 'file:///tmp/frazil-warehouse-0.2/postgresql/shop.eu/before/metadata/00000-4d17febf-96f2-4d33-a6a3-2e20bd9a195d.metadata.json', NULL, 'V4');


--
-- Name: frazil_tables_table_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.frazil_tables_table_id_seq', 7, true);


--
-- Name: frazil_definitions frazil_definitions_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.frazil_definitions
    ADD CONSTRAINT frazil_definitions_pkey PRIMARY KEY (table_id);


--
-- Name: frazil_layout frazil_layout_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.frazil_layout
    ADD CONSTRAINT frazil_layout_pkey PRIMARY KEY (layout_version);


--
-- Name: frazil_metadata_log frazil_metadata_log_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.frazil_metadata_log
    ADD CONSTRAINT frazil_metadata_log_pkey PRIMARY KEY (table_id, version, "position");


--
-- Name: frazil_notes frazil_notes_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.frazil_notes
    ADD CONSTRAINT frazil_notes_pkey PRIMARY KEY (table_id, name);


--
-- Name: frazil_offers frazil_offers_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.frazil_offers
    ADD CONSTRAINT frazil_offers_pkey PRIMARY KEY (offer_id);


--
-- Name: frazil_snapshot_log frazil_snapshot_log_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.frazil_snapshot_log
    ADD CONSTRAINT frazil_snapshot_log_pkey PRIMARY KEY (table_id, version, "position");


--
-- Name: frazil_snapshots frazil_snapshots_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.frazil_snapshots
    ADD CONSTRAINT frazil_snapshots_pkey PRIMARY KEY (table_id, snapshot_id);


--
-- Name: frazil_tables frazil_tables_catalog_name_table_namespace_table_name_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.frazil_tables
    ADD CONSTRAINT frazil_tables_catalog_name_table_namespace_table_name_key UNIQUE (catalog_name, table_namespace, table_name);


--
-- Name: frazil_tables frazil_tables_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.frazil_tables
    ADD CONSTRAINT frazil_tables_pkey PRIMARY KEY (table_id);


--
-- Name: frazil_views frazil_views_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.frazil_views
    ADD CONSTRAINT frazil_views_pkey PRIMARY KEY (catalog_name, view_namespace, view_name);


--
-- Name: iceberg_namespace_properties iceberg_namespace_properties_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.iceberg_namespace_properties
    ADD CONSTRAINT iceberg_namespace_properties_pkey PRIMARY KEY (catalog_name, namespace, property_key);


--
-- Name: iceberg_tables iceberg_tables_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.iceberg_tables
    ADD CONSTRAINT iceberg_tables_pkey PRIMARY KEY (catalog_name, table_namespace, table_name);


--
-- Name: frazil_tables_by_location; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX frazil_tables_by_location ON public.frazil_tables USING btree (location);


--
-- PostgreSQL database dump complete
--


