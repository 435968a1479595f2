//! Domain parameters of the curves, from WAP-261 Table 8 and, for the four without a number, SEC 2
//! version 2.0 (<https://www.secg.org/sec2-v2.pdf>).

/// The field of a curve.
pub(super) enum Field {
    /// Integers modulo `p`.
    Prime { p: &'static str },
    /// Polynomials modulo x^m + x^k + 1.
    Trinomial { m: u16, k: u16 },
    /// Polynomials modulo x^m + x^k3 + x^k2 + x^k1 + 1.
    Pentanomial { m: u16, k1: u16, k2: u16, k3: u16 },
}

/// The parameters of a curve. Numbers are hexadecimal, as long as the field or the order.
pub(super) struct CurveData {
    pub number: Option<u8>,
    pub short_name: &'static str,
    pub standard_name: &'static str,
    pub field: Field,
    pub a: &'static str,
    pub b: &'static str,
    pub generator_x: &'static str,
    pub generator_y: &'static str,
    /// The bit that represents y in the compressed form.
    pub generator_sign: u8,
    pub order: &'static str,
    pub cofactor: u8,
}

/// The curves in the order of their enumeration.
pub(super) static CURVES: [CurveData; 15] = [
    CurveData {
        number: Some(1),
        short_name: "wtls1",
        standard_name: "wap-wsg-idm-ecid-wtls1",
        field: Field::Trinomial { m: 113, k: 9 },
        a: "000000000000000000000000000001",
        b: "000000000000000000000000000001",
        generator_x: "01667979A40BA497E5D5C270780617",
        generator_y: "00F44B4AF1ECC2630E08785CEBCC15",
        generator_sign: 1,
        order: "FFFFFFFFFFFFFFFDBF91AF6DEA73",
        cofactor: 2,
    },
    CurveData {
        number: Some(3),
        short_name: "163k",
        standard_name: "sect163k1",
        field: Field::Pentanomial { m: 163, k1: 3, k2: 6, k3: 7 },
        a: "000000000000000000000000000000000000000001",
        b: "000000000000000000000000000000000000000001",
        generator_x: "02FE13C0537BBC11ACAA07D793DE4E6D5E5C94EEE8",
        generator_y: "0289070FB05D38FF58321F2E800536D538CCDAA3D9",
        generator_sign: 1,
        order: "04000000000000000000020108A2E0CC0D99F8A5EF",
        cofactor: 2,
    },
    CurveData {
        number: Some(4),
        short_name: "wtls4",
        standard_name: "sect113r1",
        field: Field::Trinomial { m: 113, k: 9 },
        a: "003088250CA6E7C7FE649CE85820F7",
        b: "00E8BEE4D3E2260744188BE0E9C723",
        generator_x: "009D73616F35F4AB1407D73562C10F",
        generator_y: "00A52830277958EE84D1315ED31886",
        generator_sign: 1,
        order: "0100000000000000D9CCEC8A39E56F",
        cofactor: 2,
    },
    CurveData {
        number: Some(5),
        short_name: "wtls5",
        standard_name: "c2pnb163v1",
        field: Field::Pentanomial { m: 163, k1: 1, k2: 2, k3: 8 },
        a: "072546B5435234A422E0789675F432C89435DE5242",
        b: "00C9517D06D5240D3CFF38C74B20B6CD4D6F9DD4D9",
        generator_x: "07AF69989546103D79329FCC3D74880F33BBE803CB",
        generator_y: "01EC23211B5966ADEA1D3F87F7EA5848AEF0B7CA9F",
        generator_sign: 1,
        order: "0400000000000000000001E60FC8821CC74DAEAFC1",
        cofactor: 2,
    },
    CurveData {
        number: Some(6),
        short_name: "wtls6",
        standard_name: "wap-wsg-idm-ecid-wtls6",
        field: Field::Prime { p: "DB7C2ABF62E35E668076BEAD208B" },
        a: "DB7C2ABF62E35E668076BEAD2088",
        b: "659EF8BA043916EEDE8911702B22",
        generator_x: "09487239995A5EE76B55F9C2F098",
        generator_y: "A89CE5AF8724C0A23E0E0FF77500",
        generator_sign: 0,
        order: "DB7C2ABF62E35E7628DFAC6561C5",
        cofactor: 1,
    },
    CurveData {
        number: Some(7),
        short_name: "160p",
        standard_name: "secp160r1",
        field: Field::Prime { p: "FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF7FFFFFFF" },
        a: "FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF7FFFFFFC",
        b: "1C97BEFC54BD7A8B65ACF89F81D4D4ADC565FA45",
        generator_x: "4A96B5688EF573284664698968C38BB913CBFC82",
        generator_y: "23A628553168947D59DCC912042351377AC5FB32",
        generator_sign: 0,
        order: "0100000000000000000001F4C8F927AED3CA752257",
        cofactor: 1,
    },
    CurveData {
        number: Some(8),
        short_name: "wtls8",
        standard_name: "wap-wsg-idm-ecid-wtls8",
        field: Field::Prime { p: "FFFFFFFFFFFFFFFFFFFFFFFFFDE7" },
        a: "0000000000000000000000000000",
        b: "0000000000000000000000000003",
        generator_x: "0000000000000000000000000001",
        generator_y: "0000000000000000000000000002",
        generator_sign: 0,
        order: "0100000000000001ECEA551AD837E9",
        cofactor: 1,
    },
    CurveData {
        number: Some(9),
        short_name: "wtls9",
        standard_name: "wap-wsg-idm-ecid-wtls9",
        field: Field::Prime { p: "FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFC808F" },
        a: "0000000000000000000000000000000000000000",
        b: "0000000000000000000000000000000000000003",
        generator_x: "0000000000000000000000000000000000000001",
        generator_y: "0000000000000000000000000000000000000002",
        generator_sign: 0,
        order: "0100000000000000000001CDC98AE0E2DE574ABF33",
        cofactor: 1,
    },
    CurveData {
        number: Some(10),
        short_name: "233k",
        standard_name: "sect233k1",
        field: Field::Trinomial { m: 233, k: 74 },
        a: "000000000000000000000000000000000000000000000000000000000000",
        b: "000000000000000000000000000000000000000000000000000000000001",
        generator_x: "017232BA853A7E731AF129F22FF4149563A419C26BF50A4C9D6EEFAD6126",
        generator_y: "01DB537DECE819B7F70F555A67C427A8CD9BF18AEB9B56E0C11056FAE6A3",
        generator_sign: 0,
        order: "8000000000000000000000000000069D5BB915BCD46EFB1AD5F173ABDF",
        cofactor: 4,
    },
    CurveData {
        number: Some(11),
        short_name: "233r",
        standard_name: "sect233r1",
        field: Field::Trinomial { m: 233, k: 74 },
        a: "000000000000000000000000000000000000000000000000000000000001",
        b: "0066647EDE6C332C7F8C0923BB58213B333B20E9CE4281FE115F7D8F90AD",
        generator_x: "00FAC9DFCBAC8313BB2139F1BB755FEF65BC391F8B36F8F8EB7371FD558B",
        generator_y: "01006A08A41903350678E58528BEBF8A0BEFF867A7CA36716F7E01F81052",
        generator_sign: 1,
        order: "01000000000000000000000000000013E974E72F8A6922031D2603CFE0D7",
        cofactor: 2,
    },
    CurveData {
        number: Some(12),
        short_name: "224p",
        standard_name: "secp224r1",
        field: Field::Prime { p: "FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF000000000000000000000001" },
        a: "FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEFFFFFFFFFFFFFFFFFFFFFFFE",
        b: "B4050A850C04B3ABF54132565044B0B7D7BFD8BA270B39432355FFB4",
        generator_x: "B70E0CBD6BB4BF7F321390B94A03C1D356C21122343280D6115C1D21",
        generator_y: "BD376388B5F723FB4C22DFE6CD4375A05A07476444D5819985007E34",
        generator_sign: 0,
        order: "FFFFFFFFFFFFFFFFFFFFFFFFFFFF16A2E0B8F03E13DD29455C5C2A3D",
        cofactor: 1,
    },
    CurveData {
        number: None,
        short_name: "163r",
        standard_name: "sect163r2",
        field: Field::Pentanomial { m: 163, k1: 3, k2: 6, k3: 7 },
        a: "000000000000000000000000000000000000000001",
        b: "020A601907B8C953CA1481EB10512F78744A3205FD",
        generator_x: "03F0EBA16286A2D57EA0991168D4994637E8343E36",
        generator_y: "00D51FBC6C71A0094FA2CDD545B11C5C0C797324F1",
        generator_sign: 1,
        order: "040000000000000000000292FE77E70C12A4234C33",
        cofactor: 2,
    },
    CurveData {
        number: None,
        short_name: "256p",
        standard_name: "prime256v1",
        field: Field::Prime { p: "FFFFFFFF00000001000000000000000000000000FFFFFFFFFFFFFFFFFFFFFFFF" },
        a: "FFFFFFFF00000001000000000000000000000000FFFFFFFFFFFFFFFFFFFFFFFC",
        b: "5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B",
        generator_x: "6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296",
        generator_y: "4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5",
        generator_sign: 1,
        order: "FFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551",
        cofactor: 1,
    },
    CurveData {
        number: None,
        short_name: "283k",
        standard_name: "sect283k1",
        field: Field::Pentanomial { m: 283, k1: 5, k2: 7, k3: 12 },
        a: "000000000000000000000000000000000000000000000000000000000000000000000000",
        b: "000000000000000000000000000000000000000000000000000000000000000000000001",
        generator_x: "0503213F78CA44883F1A3B8162F188E553CD265F23C1567A16876913B0C2AC2458492836",
        generator_y: "01CCDA380F1C9E318D90F95D07E5426FE87E45C0E8184698E45962364E34116177DD2259",
        generator_sign: 0,
        order: "01FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFE9AE2ED07577265DFF7F94451E061E163C61",
        cofactor: 4,
    },
    CurveData {
        number: None,
        short_name: "283r",
        standard_name: "sect283r1",
        field: Field::Pentanomial { m: 283, k1: 5, k2: 7, k3: 12 },
        a: "000000000000000000000000000000000000000000000000000000000000000000000001",
        b: "027B680AC8B8596DA5A4AF8A19A0303FCA97FD7645309FA2A581485AF6263E313B79A2F5",
        generator_x: "05F939258DB7DD90E1934F8C70B0DFEC2EED25B8557EAC9C80E2E198F8CDBECD86B12053",
        generator_y: "03676854FE24141CB98FE6D4B20D02B4516FF702350EDDB0826779C813F0DF45BE8112F4",
        generator_sign: 1,
        order: "03FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEF90399660FC938A90165B042A7CEFADB307",
        cofactor: 2,
    },
];

/// Sizes of each curve's field and order, in bits.
pub(super) static SIZES: [(u32, u32); 15] = {
    let mut sizes = [(0, 0); 15];
    let mut curve = 0;
    while curve < sizes.len() {
        let field = match CURVES[curve].field {
            Field::Prime { p } => bits(p),
            Field::Trinomial { m, .. } | Field::Pentanomial { m, .. } => m as u32,
        };
        sizes[curve] = (field, bits(CURVES[curve].order));
        curve += 1;
    }
    sizes
};

/// The size of a hexadecimal number, in bits.
const fn bits(number: &str) -> u32 {
    let digits = number.as_bytes();
    let mut zeros = 0;
    while digits[zeros] == b'0' {
        zeros += 1;
    }
    let unused = match digits[zeros] {
        b'1' => 3,
        b'2' | b'3' => 2,
        b'4'..=b'7' => 1,
        _ => 0,
    };
    4 * (digits.len() - zeros) as u32 - unused
}
