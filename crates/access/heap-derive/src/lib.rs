//! `#[derive(Plain)]`: structures that may lie in memory that another program, or another run,
//! looks at.
//!
//! It proves at compile time what `onode_heap::Plain` asks for: a fixed layout, no padding, and
//! fields that are `Plain` themselves; what is not is refused in words. It makes nothing `Clone` or
//! `Copy`.

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, Index, Member, parse_macro_input, parse_quote};

/// Implements `onode_heap::Plain` for a structure with `#[repr(C)]` or `#[repr(transparent)]` all
/// of whose fields are `Plain` and that has no padding.
#[proc_macro_derive(Plain)]
pub fn derive_plain(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    implementation(input).unwrap_or_else(Error::into_compile_error).into()
}

fn implementation(input: DeriveInput) -> Result<Tokens, Error> {
    let name = input.ident;
    let Data::Struct(data) = input.data else {
        let why = "only a structure can be Plain: not every bit pattern is a value of an enum, and which one of a union's \
                   fields counts nobody knows. Store a number, and make the enum of it";
        return Err(Error::new(name.span(), why));
    };
    let mut is_fixed = false;
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("repr")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("C") || meta.path.is_ident("transparent") {
                is_fixed = true;
            } else if meta.path.is_ident("packed") {
                return Err(meta.error("Plain values are read and written at their alignment: without packed, please"));
            }
            if meta.input.peek(syn::token::Paren) {
                let inside;
                syn::parenthesized!(inside in meta.input);
                inside.parse::<Tokens>()?;
            }
            Ok(())
        })?;
    }
    if !is_fixed {
        let why = "the layout has to be fixed: add #[repr(C)], or #[repr(transparent)] to a structure of one field";
        return Err(Error::new(name.span(), why));
    }
    let members: Vec<Member> = match &data.fields {
        Fields::Named(fields) => {
            fields.named.iter().filter_map(|field| field.ident.clone().map(Member::Named)).collect()
        }
        Fields::Unnamed(fields) => (0..fields.unnamed.len()).map(|at| Member::Unnamed(Index::from(at))).collect(),
        Fields::Unit => Vec::new(),
    };
    let types: Vec<_> = data.fields.iter().map(|field| field.ty.clone()).collect();
    let mut generics = input.generics;
    for parameter in input_types(&generics) {
        generics.make_where_clause().predicates.push(parse_quote!(#parameter: ::onode_heap::Plain));
    }
    let (parameters, arguments, conditions) = generics.split_for_impl();
    let names: Vec<String> = std::iter::once(name.to_string()).chain(members.iter().map(member_name)).collect();
    let checks = types.iter().map(|field| {
        quote_spanned!(field.span()=> {
            const fn each_field_is_plain<Field: ::onode_heap::Plain>() {}
            each_field_is_plain::<#field>();
        })
    });
    let padding = format!(
        "{name} has padding between or behind its fields, and padding holds whatever was there before: order the fields by \
         alignment, or fill the gaps with arrays of u8"
    );
    Ok(quote! {
        // SAFETY: the layout is fixed, each field is Plain, and the sum of their sizes proves that
        // there is no padding: all of it is evaluated with `LAYOUT`, which every use of the type
        // goes through, and for types without parameters below.
        unsafe impl #parameters ::onode_heap::Plain for #name #arguments #conditions {
            const LAYOUT: u64 = {
                #(#checks)*
                let fields: usize = 0 #(+ ::core::mem::size_of::<#types>())*;
                assert!(::core::mem::size_of::<Self>() == fields, #padding);
                ::onode_heap::layout_of(&[#(#names),*], &[#(<#types as ::onode_heap::Plain>::LAYOUT),*])
            };
        }
    })
    .map(|made: Tokens| {
        if generics.params.is_empty() {
            quote!(#made const _: u64 = <#name as ::onode_heap::Plain>::LAYOUT;)
        } else {
            made
        }
    })
}

fn input_types(generics: &syn::Generics) -> Vec<syn::Ident> {
    generics.type_params().map(|parameter| parameter.ident.clone()).collect()
}

fn member_name(member: &Member) -> String {
    match member {
        Member::Named(name) => name.to_string(),
        Member::Unnamed(index) => index.index.to_string(),
    }
}
